//! A gateway, a supervisor, and commands that know only them.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tidegate_testkit::process::Process;
use tidegate_testkit::target::Target;

/// The sandbox's name.
pub(crate) const SANDBOX: &str = "demo";

/// How long a command may take that has nothing to wait for.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// A gateway and a supervisor, each a process that can be killed, and a home for contexts.
pub(crate) struct House {
    pub(crate) gateway: Process,
    pub(crate) address: SocketAddr,
    pub(crate) supervisor: Process,
    home: TempDir,
}

impl House {
    pub(crate) async fn new() -> Self {
        let gateway = start_gateway("127.0.0.1:0");
        let address = gateway.address_after("listening").await;
        let supervisor = start_supervisor(address).await;
        Self {
            gateway,
            address,
            supervisor,
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// Starts another gateway on the same port.
    pub(crate) async fn gateway_back(&mut self) {
        self.gateway = start_gateway(&self.address.to_string());
        self.gateway.line("listening").await;
    }

    /// Starts another supervisor.
    pub(crate) async fn supervisor_back(&mut self) {
        self.supervisor = start_supervisor(self.address).await;
    }

    /// A command that finds this gateway.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = tidegate(self.home.path(), args);
        command.env("TIDEGATE_GATEWAY", format!("http://{}", self.address));
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Process {
        Process::spawn(self.command(args)).unwrap()
    }

    /// A command with a stdin to write to.
    pub(crate) fn run_with_stdin(&self, args: &[&str]) -> Process {
        let mut command = self.command(args);
        command.stdin(Stdio::piped());
        Process::spawn(command).unwrap()
    }

    /// Runs a command to its end and returns what it wrote to stdout.
    pub(crate) async fn output(&self, args: &[&str]) -> String {
        let process = self.run(args);
        assert!(ended(&process, SOON).await.success(), "{process}");
        process.stdout().to_string()
    }

    /// As [`output`](Self::output), read as JSON.
    pub(crate) async fn json(&self, args: &[&str]) -> Value {
        let args = [args, &["--output", "json"]].concat();
        serde_json::from_str(&self.output(&args).await).unwrap()
    }

    /// A forward to `target` that listens, and its local address.
    pub(crate) async fn forward(&self, target: &Target, args: &[&str]) -> (Process, SocketAddr) {
        let spec = format!(":{}", target.address().port());
        let args = [&["port-forward", SANDBOX, &spec, "--output", "json"], args].concat();
        let process = self.run(&args);
        let local = address_in(&event(&process, "listening").await["local"]);
        (process, local)
    }
}

/// A command without a gateway, at home in a folder.
pub(crate) fn tidegate(home: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command
        .args(args)
        .env("XDG_CONFIG_HOME", home)
        .env_remove("TIDEGATE_GATEWAY")
        .env_remove("TIDEGATE_CONTEXT")
        .env_remove("TIDEGATE_TOKEN")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null());
    command
}

/// Waits for the end of a command, and of all that it writes.
pub(crate) async fn ended(process: &Process, bound: Duration) -> ExitStatus {
    let status = process.exit(bound).await;
    for output in [process.stdout(), process.stderr()] {
        output.line(|_| false).await;
    }
    status
}

/// The first event of that name.
pub(crate) async fn event(process: &Process, name: &str) -> Value {
    let line = process.line(&format!("\"event\":\"{name}\"")).await;
    serde_json::from_str(&line).unwrap()
}

pub(crate) fn address_in(value: &Value) -> SocketAddr {
    value.as_str().unwrap().parse().unwrap()
}

fn start_gateway(listen: &str) -> Process {
    part(&["gateway", listen])
}

async fn start_supervisor(gateway: SocketAddr) -> Process {
    let supervisor = part(&["supervisor", &format!("http://{gateway}")]);
    supervisor.line("ready").await;
    supervisor
}

/// A part of the demonstration, which runs as long as its stdin is open.
fn part(args: &[&str]) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("demo-part").args(args).stdin(Stdio::piped());
    Process::spawn(command).unwrap()
}
