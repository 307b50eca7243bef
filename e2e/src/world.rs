//! The programs of one test.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Mutex;

use tempfile::TempDir;
use tidegate_client::exec::Command;
use tidegate_client::{Client, SandboxName, Stream};
use tidegate_testkit::certs::Authority;
use tidegate_testkit::fault_proxy::FaultProxy;
use tidegate_testkit::probe::Baseline;
use tidegate_testkit::process::Process;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::{GENEROUS, within};
use toml::Table;

use crate::credentials::Credentials;
use crate::daemon::Daemon;
use crate::forward::{Access, Forward, Via};
use crate::{Options, SANDBOX, Topology, journal, settle};

/// Threads of each daemon: enough for races, and as many as the machine has cores.
const THREADS: i64 = 2;

/// What a supervisor logs when it has a session.
const ESTABLISHED: &str = "session established";

/// Gateways and a supervisor, what is between them, and what leads to them.
#[derive(Debug)]
pub struct World {
    topology: Topology,
    options: Options,
    directory: TempDir,
    credentials: Option<Credentials>,
    gateways: Vec<Gateway>,
    supervisor: Option<Daemon>,
    ended: Vec<Process>,
    client_proxy: Option<FaultProxy>,
    supervisor_proxy: Option<FaultProxy>,
    baseline: Option<Baseline>,
    forwards: Mutex<Vec<Forward>>,
    settled: bool,
}

/// A gateway, and where it listens: a restart does not move it.
#[derive(Debug)]
struct Gateway {
    daemon: Daemon,
    address: SocketAddr,
    config: PathBuf,
}

impl World {
    /// Starts the programs of `topology` and waits until they have a session, unless there is to be
    /// no supervisor.
    ///
    /// # Panics
    ///
    /// If one does not start; shows what it wrote.
    pub async fn start(topology: Topology, options: Options) -> Self {
        let directory = tempfile::tempdir().expect("there is a temporary directory");
        let mut world = Self {
            credentials: topology.tls.then(Credentials::new),
            gateways: Vec::new(),
            supervisor: None,
            ended: Vec::new(),
            client_proxy: None,
            supervisor_proxy: None,
            baseline: None,
            forwards: Mutex::default(),
            settled: false,
            directory,
            topology,
            options,
        };
        for index in 0..topology.gateways {
            let gateway = world.spawn_gateway(index).await;
            world.gateways.push(gateway);
        }
        let proxy = |upstream| FaultProxy::start(upstream).expect("there is a free port");
        world.client_proxy = world
            .options
            .client_proxy
            .then(|| proxy(world.entry().address));
        world.supervisor_proxy = world
            .options
            .supervisor_proxy
            .then(|| proxy(world.home().address));
        if !world.options.no_supervisor {
            world.start_supervisor().await;
        }
        world.rebase().await;
        world
    }

    /// The topology it was started in.
    pub fn topology(&self) -> Topology {
        self.topology
    }

    /// The gateway that clients talk to.
    pub fn gateway(&self) -> &Daemon {
        &self.entry().daemon
    }

    /// The supervisor.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn supervisor(&self) -> &Daemon {
        self.supervisor.as_ref().expect("there is a supervisor")
    }

    /// The proxy between clients and gateway.
    ///
    /// # Panics
    ///
    /// If the options asked for none.
    pub fn client_proxy(&self) -> &FaultProxy {
        let proxy = self.client_proxy.as_ref();
        proxy.expect("the options ask for a proxy before the gateway")
    }

    /// The proxy between supervisor and gateway.
    ///
    /// # Panics
    ///
    /// If the options asked for none.
    pub fn supervisor_proxy(&self) -> &FaultProxy {
        let proxy = self.supervisor_proxy.as_ref();
        proxy.expect("the options ask for a proxy behind the gateway")
    }

    /// Where clients connect, through their proxy if there is one.
    pub fn client_address(&self) -> SocketAddr {
        let proxy = self.client_proxy.as_ref().map(FaultProxy::address);
        proxy.unwrap_or_else(|| self.entry().address)
    }

    /// Where the supervisor's gateway listens, through their proxy if there is one.
    pub fn supervisor_address(&self) -> SocketAddr {
        let proxy = self.supervisor_proxy.as_ref().map(FaultProxy::address);
        proxy.unwrap_or_else(|| self.home().address)
    }

    /// Where the gateway that supervisors talk to listens, past any proxy.
    pub fn gateway_address(&self) -> SocketAddr {
        self.home().address
    }

    /// How clients get in.
    pub fn access(&self) -> Access {
        let mut access = Access::new([self.url(self.client_address())]);
        if let Some(credentials) = &self.credentials {
            access.ca = Some(credentials.authority().ca());
            access.cert = Some(credentials.client().cert.clone());
            access.key = Some(credentials.client().key.clone());
        }
        access
    }

    /// A new client of the SDK, with connections of its own. Drop it before the world settles.
    ///
    /// # Panics
    ///
    /// Never: its configuration is good.
    pub fn client(&self) -> Client {
        Client::new(&self.access()).expect("the world's configuration is good")
    }

    /// Opens a stream of the SDK to `target`, with a client of its own.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub async fn stream(&self, target: SocketAddr) -> Stream {
        let stream = open(&self.client(), target).await;
        stream.unwrap_or_else(|end| panic!("no stream: {end}"))
    }

    /// Leads a local port to `target`.
    pub async fn forward(&self, target: &Target) -> Forward {
        self.forward_to(&target.address().to_string()).await
    }

    /// Leads a local port to `target`, `HOST:PORT` as the supervisor sees it.
    pub async fn forward_to(&self, target: &str) -> Forward {
        let via = self.options.via.unwrap_or_else(Via::from_env);
        let forward = Forward::start(via, &self.access(), target).await;
        self.forwards_mut().push(forward.clone());
        forward
    }

    /// Starts the supervisor, if there is none, and waits for its session.
    ///
    /// # Panics
    ///
    /// If it does not get one.
    pub async fn start_supervisor(&mut self) {
        let daemon = self.spawn_supervisor("supervisor", SANDBOX).await;
        daemon.process().line(ESTABLISHED).await;
        if let Some(before) = self.supervisor.replace(daemon) {
            self.ended.push(before.into_process());
        }
    }

    /// Starts another supervisor process, with the configuration of this world's, and does not wait
    /// for a session.
    pub async fn spawn_supervisor(&self, name: &str, sandbox: &str) -> Daemon {
        let mut table = self.options.supervisor.clone();
        let mut default = |key: &str, value: toml::Value| {
            table.entry(key).or_insert(value);
        };
        let gateway = self.url(self.supervisor_address());
        default("gateway", vec![gateway].into());
        default("sandbox", sandbox.into());
        default("admin", "127.0.0.1:0".into());
        default("threads", THREADS.into());
        if let Some(credentials) = &self.credentials {
            credentials.configure_supervisor(&mut table);
        }
        let config = self.write(name, &table);
        Daemon::start("tidegate-supervisor", &config, &self.options).await
    }

    /// Takes the supervisor out of the world, to signal it or to let it go.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn take_supervisor(&mut self) -> Daemon {
        self.supervisor.take().expect("there is a supervisor")
    }

    /// Kills the supervisor with SIGKILL and waits for its end.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub async fn kill_supervisor(&mut self) {
        let process = self.take_supervisor().into_process();
        process.kill();
        process.exit(GENEROUS).await;
        self.ended.push(process);
    }

    /// Kills the gateway that clients talk to with SIGKILL and waits for its end.
    pub async fn kill_gateway(&self) {
        self.gateway().process().kill();
        self.gateway().process().exit(GENEROUS).await;
    }

    /// Starts the gateway that clients talk to again, at the same address.
    pub async fn restart_gateway(&mut self) {
        let config = self.entry().config.clone();
        let daemon = Daemon::start("tidegate-gateway", &config, &self.options).await;
        let entry = self.gateways.last_mut().expect("there is a gateway");
        let before = std::mem::replace(&mut entry.daemon, daemon);
        self.ended.push(before.into_process());
    }

    /// Waits until the supervisor has had `count` sessions since it started.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn until_sessions(&self, count: usize) {
        let supervisor = self.supervisor();
        supervisor.until_logged(ESTABLISHED, count, GENEROUS).await;
    }

    /// How many sessions the supervisor has had since it started.
    pub fn sessions(&self) -> usize {
        self.supervisor().logged(ESTABLISHED)
    }

    /// Sets a key of the configuration of supervisors that are started from here on.
    pub fn configure_supervisor(&mut self, key: &str, value: impl Into<toml::Value>) {
        let table = &mut self.options.supervisor;
        table.insert(key.to_owned(), value.into());
    }

    /// The authority behind every certificate.
    ///
    /// # Panics
    ///
    /// If the topology has no TLS.
    pub fn authority(&self) -> &Authority {
        let credentials = self.credentials.as_ref();
        credentials.expect("the topology has TLS").authority()
    }

    /// Lets programs warn in lines that contain `text`.
    pub fn expect_warning(&mut self, text: &str) {
        self.options.expected.push(text.to_owned());
    }

    /// Uses every path once and takes what is held then as what may be held at the end. Needed
    /// again after a restart. Ends every forward.
    ///
    /// # Panics
    ///
    /// If a path does not work, or a stream is left.
    pub async fn rebase(&mut self) {
        if let Err(left) = self.end_forwards().await {
            panic!("the world does not settle: {left}");
        }
        if self.supervisor.is_some() {
            within(GENEROUS, "every lane to be used", self.warm_up()).await;
        }
        if self.options.foreign_hops {
            return;
        }
        for gateway in &self.gateways {
            settle::connections_end(&gateway.daemon, self.supervisor.as_ref()).await;
        }
        self.baseline = Some(self.measure());
    }

    /// Fails unless everything is as it was when the world had started: no stream, descriptor,
    /// socket, buffered byte left, every stream counted out, no warning that was not expected. Local
    /// sockets, targets and clients of the test must be gone before, or at least closed.
    ///
    /// # Panics
    ///
    /// If something is left after 10 s.
    pub async fn settle(mut self) {
        if let Err(left) = self.leftovers().await {
            panic!("the world does not settle: {left}");
        }
        self.settled = true;
    }

    async fn leftovers(&self) -> Result<(), String> {
        let mut ports = self.end_forwards().await?;
        let daemons = self.daemons();
        for daemon in &daemons {
            settle::counters_add_up(daemon)?;
        }
        ports.extend(self.gateways.iter().map(|gateway| gateway.address.port()));
        if let Some(baseline) = &self.baseline {
            settle::holdings_return(baseline, &ports).await?;
        }
        self.check_log(daemons.iter().map(|daemon| daemon.process()))?;
        self.check_log(&self.ended)
    }

    /// Ends the forwards once no stream is open anywhere, and returns their ports.
    async fn end_forwards(&self) -> Result<Vec<u16>, String> {
        let forwards = std::mem::take(&mut *self.forwards_mut());
        settle::streams_end(&self.daemons(), &forwards).await?;
        let mut ports = Vec::new();
        for forward in forwards {
            ports.push(forward.address().port());
            forward.end().await;
            self.check_log(forward.process())?;
        }
        Ok(ports)
    }

    fn check_log<'a>(
        &self,
        processes: impl IntoIterator<Item = &'a Process>,
    ) -> Result<(), String> {
        for process in processes {
            let surprises = journal::surprises(process, &self.options.expected);
            if !surprises.is_empty() {
                return Err(format!("{surprises:#?} in the log of {process}"));
            }
        }
        Ok(())
    }

    fn measure(&self) -> Baseline {
        let daemons = self.daemons();
        let ids: Vec<u32> = daemons.iter().map(|it| it.process().id()).collect();
        let urls: Vec<String> = daemons.iter().map(|it| it.metrics_url()).collect();
        Baseline::take(&ids, &urls)
    }

    /// Each client comes in on the next thread, so these use every thread and its data connection.
    async fn warm_up(&self) {
        let echo = Target::echo().expect("there is a free port");
        for _ in 0..=2 * THREADS {
            let mut stream = self.stream(echo.address()).await;
            let works = async {
                stream.send(b"?").await?;
                stream.finish().await?;
                while stream.recv().await?.is_some() {}
                stream.closed().await
            };
            if let Err(end) = works.await {
                panic!("the path does not work: {end}");
            }
        }
        if self.options.commands {
            self.run_a_command().await;
        }
    }

    async fn run_a_command(&self) {
        let command = Command {
            argv: vec!["true".to_owned()],
            ..Command::default()
        };
        let sandbox = SandboxName::parse(SANDBOX).expect("it is a name");
        let exec = self.client().exec(&sandbox, command).await;
        let outcome = exec.expect("the gateway listens").wait().await;
        assert!(outcome.is_success(), "no commands are run: {outcome}");
    }

    async fn spawn_gateway(&self, index: usize) -> Gateway {
        let mut table = self.options.gateway.clone();
        let mut default = |key: &str, value: toml::Value| {
            table.entry(key).or_insert(value);
        };
        default("listen", "127.0.0.1:0".into());
        default("admin", "127.0.0.1:0".into());
        default("threads", THREADS.into());
        default("gateway_id", format!("gw{index}").into());
        default("sandboxes", vec![SANDBOX].into());
        match &self.credentials {
            Some(credentials) => credentials.configure_gateway(&mut table),
            None => default("insecure_dev", true.into()),
        }
        let name = format!("gateway-{index}");
        let config = self.write(&name, &table);
        let daemon = Daemon::start("tidegate-gateway", &config, &self.options).await;
        let address = daemon.process().address_after(": listening on ").await;
        // From here on it is where its clients have learnt that it is.
        table.insert("listen".to_owned(), address.to_string().into());
        let config = self.write(&name, &table);
        Gateway {
            daemon,
            address,
            config,
        }
    }

    fn write(&self, name: &str, table: &Table) -> PathBuf {
        let path = self.directory.path().join(format!("{name}.toml"));
        let text = toml::to_string(table).expect("a table is TOML");
        fs::write(&path, text).expect("a temporary file can be written");
        path
    }

    fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.topology.tls { "https" } else { "http" };
        format!("{scheme}://{address}")
    }

    fn entry(&self) -> &Gateway {
        self.gateways.last().expect("there is a gateway")
    }

    fn home(&self) -> &Gateway {
        self.gateways.first().expect("there is a gateway")
    }

    fn daemons(&self) -> Vec<&Daemon> {
        let gateways = self.gateways.iter().map(|gateway| &gateway.daemon);
        gateways.chain(&self.supervisor).collect()
    }

    fn forwards_mut(&self) -> std::sync::MutexGuard<'_, Vec<Forward>> {
        self.forwards.lock().expect("no holder panics")
    }

    /// The certificates, for peers that the test plays.
    pub(crate) fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }
}

/// Opens a stream of the SDK to `target`.
///
/// # Errors
///
/// Why it could not be opened.
pub async fn open(client: &Client, target: SocketAddr) -> Result<Stream, tidegate_client::End> {
    let sandbox = SandboxName::parse(SANDBOX).expect("it is a name");
    let host = target.ip().to_string();
    let target = tidegate_client::Target::tcp(&host, target.port().into());
    let stream = client.forward(&sandbox, target.expect("it is a target"));
    stream.await
}

impl Drop for World {
    fn drop(&mut self) {
        if self.settled {
            return;
        }
        if !std::thread::panicking() {
            panic!("a test ends with `world.settle().await`");
        }
        self.tell();
    }
}

impl World {
    /// What the programs have written last, for whoever reads why a test failed.
    fn tell(&self) {
        let running = self.daemons().into_iter().map(Daemon::process);
        let forwards = self.forwards_mut().clone();
        let commands = forwards.iter().filter_map(Forward::process);
        for process in running.chain(&self.ended).chain(commands) {
            journal::tell(process);
        }
    }
}
