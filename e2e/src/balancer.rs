//! Other people's proxies in front of a gateway, with the settings that `deploy/proxies` ships.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;
use tidegate_client::Client;
use tidegate_testkit::certs::{Authority, CertFiles};
use tidegate_testkit::process::Process;
use tidegate_testkit::wait;

use crate::forward::Access;
use crate::tools::{daemon, free_port, until_listening};
use crate::{Options, Topology, World, journal};

/// Which proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nginx with `grpc_pass`: `nginx.conf`.
    Nginx,
    /// HAProxy, which passes the bytes on unread: `haproxy.cfg`.
    Haproxy,
    /// HAProxy with HTTP/2 on both sides: `haproxy-http.cfg`.
    HaproxyHttp,
}

impl Kind {
    fn settings(self) -> &'static str {
        match self {
            Self::Nginx => "nginx.conf",
            Self::Haproxy => "haproxy.cfg",
            Self::HaproxyHttp => "haproxy-http.cfg",
        }
    }

    /// Who ends TLS speaks plaintext to the gateway, since it has no certificate of a caller.
    fn topology(self) -> Topology {
        match self {
            Self::Nginx | Self::HaproxyHttp => Topology::PLAINTEXT,
            Self::Haproxy => Topology::TLS,
        }
    }
}

/// A world whose clients and supervisor reach the gateway through a proxy.
#[derive(Debug)]
pub struct Balanced {
    /// The programs. What [`World::access`] says leads past the proxy.
    pub world: World,
    /// How clients get in through the proxy.
    pub access: Access,
    /// The proxy's address.
    pub address: SocketAddr,
    proxy: Proxy,
    _files: (TempDir, Authority),
}

impl Balanced {
    /// Starts a proxy with the shipped settings, and a world behind it.
    ///
    /// # Panics
    ///
    /// If one does not start.
    pub async fn start(kind: Kind, options: Options) -> Self {
        Self::with_settings(kind, options, |settings| settings).await
    }

    /// The same, with settings that the test has changed.
    ///
    /// # Panics
    ///
    /// If one does not start.
    pub async fn with_settings(
        kind: Kind,
        options: Options,
        change: impl FnOnce(String) -> String,
    ) -> Self {
        let authority = Authority::new().expect("an authority can be made");
        let edge = free_port();
        let url = format!("https://127.0.0.1:{edge}");
        let mut options = options.foreign_hops().no_supervisor();
        options = options.supervisor("gateway", vec![url.clone()]);
        if !kind.topology().tls {
            options = options.supervisor("ca", text(&authority.ca()));
        }
        let mut world = World::start(kind.topology(), options).await;
        let mut access = world.access();
        access.gateways = vec![url];
        access.ca = access.ca.or_else(|| Some(authority.ca()));

        let folder = tempfile::tempdir().expect("there is a temporary directory");
        let settings = change(shipped(kind, edge, &authority, &world));
        let file = folder.path().join("settings");
        fs::write(&file, settings).expect("a temporary file can be written");
        // A check that fails once takes the gateway out for some seconds.
        until_ready(&world).await;
        let proxy = Proxy(spawn(kind, &file, folder.path()));
        until_listening(&proxy.0, edge).await;
        until_answered(&access, &proxy.0).await;
        world.start_supervisor().await;
        Self {
            world,
            access,
            address: (Ipv4Addr::LOCALHOST, edge).into(),
            proxy,
            _files: (folder, authority),
        }
    }

    /// Ends the world, then the proxy.
    ///
    /// # Panics
    ///
    /// As [`World::settle`], or if the proxy has died.
    pub async fn settle(self) {
        assert!(self.proxy.0.is_running(), "{}", self.proxy.0);
        self.world.settle().await;
    }
}

/// Says what it has seen when a test fails.
#[derive(Debug)]
struct Proxy(Process);

impl Drop for Proxy {
    fn drop(&mut self) {
        if std::thread::panicking() {
            journal::tell(&self.0);
        }
    }
}

async fn until_ready(world: &World) {
    let ready = wait::until_async(wait::GENEROUS, async || world.gateway().is_ready());
    assert!(ready.await.is_ok(), "the gateway is not ready");
}

/// Waits until a call comes through. Who listens may not have found the gateway yet.
async fn until_answered(access: &Access, proxy: &Process) {
    let client = Client::new(access).expect("the proxy's address is good");
    let mut seen = None;
    let answered = wait::until_async(wait::GENEROUS, async || {
        seen = client.sandboxes().await.err();
        seen.is_none()
    });
    assert!(answered.await.is_ok(), "{seen:?} through {proxy}");
}

fn spawn(kind: Kind, settings: &Path, folder: &Path) -> Process {
    let mut command = match kind {
        Kind::Nginx => {
            let mut command = daemon("nginx");
            let pid = folder.join("pid");
            command
                .arg("-g")
                .arg(format!("daemon off; pid {};", pid.display()));
            command.arg("-p").arg(folder).arg("-c");
            command
        }
        Kind::Haproxy | Kind::HaproxyHttp => {
            let mut command = daemon("haproxy");
            command.args(["-db", "-f"]);
            command
        }
    };
    command.arg(settings).stdin(Stdio::null());
    Process::spawn(command).expect("the proxy is installed")
}

/// The shipped settings with free ports and the test's certificates; they are the same otherwise.
fn shipped(kind: Kind, edge: u16, authority: &Authority, world: &World) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/proxies");
    let settings = fs::read_to_string(folder.join(kind.settings()));
    let mut settings = settings.expect("the settings are shipped");
    let edge = format!("127.0.0.1:{edge}");
    let gateway = world.gateway_address().to_string();
    let admin = format!("port {}", world.gateway().admin().port());
    let certificate = authority.server().expect("a certificate can be made");
    let changes: &[(&str, &str)] = match kind {
        Kind::Nginx => &[
            ("listen 443", &format!("listen {edge}")),
            ("127.0.0.1:7070", &gateway),
            ("/etc/tidegate/tls/edge.crt", &text(&certificate.cert)),
            ("/etc/tidegate/tls/edge.key", &text(&certificate.key)),
        ],
        Kind::Haproxy => &[
            ("defaults\n", &telling("tcplog")),
            ("    bind :443\n", &format!("    bind {edge}\n")),
            ("127.0.0.1:7070", &gateway),
            ("port 7071", &admin),
        ],
        Kind::HaproxyHttp => &[
            ("defaults\n", &telling("httplog")),
            ("bind :443", &format!("bind {edge}")),
            ("127.0.0.1:7070", &gateway),
            ("port 7071", &admin),
            ("/etc/tidegate/tls/edge.pem", &text(&joined(&certificate))),
        ],
    };
    for (from, to) in changes {
        settings = replaced(&settings, from, to);
    }
    settings
}

/// Lets HAProxy tell of every connection, or call, and how it ended.
fn telling(format: &str) -> String {
    format!("    log stderr format raw daemon\n\ndefaults\n    log global\n    option {format}\n")
}

/// Replaces what must be there, so that a change of the shipped settings is noticed.
///
/// # Panics
///
/// If it is not.
pub fn replaced(settings: &str, from: &str, to: &str) -> String {
    assert!(settings.contains(from), "the settings do not say {from:?}");
    settings.replace(from, to)
}

/// Certificate and key in one file, as HAProxy wants them.
fn joined(certificate: &CertFiles) -> PathBuf {
    let read = |path| fs::read_to_string(path).expect("it was written");
    let path = certificate.cert.with_extension("both.pem");
    let both = read(&certificate.cert) + &read(&certificate.key);
    fs::write(&path, both).expect("a temporary file can be written");
    path
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
