//! Other people's L7 proxies in front of a gateway, with the settings that `deploy/proxies` ships.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tidegate_testkit::certs::{Authority, CertFiles};
use tidegate_testkit::process::Process;

use crate::forward::Access;
use crate::tools::{daemon, free_port, until_listening};
use crate::{Options, Topology, World};

/// Which proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nginx, `grpc_pass`.
    Nginx,
    /// HAProxy, HTTP/2 on both sides.
    Haproxy,
}

/// A world whose clients and supervisor reach the gateway through a proxy that ends TLS.
#[derive(Debug)]
pub struct Balanced {
    /// The programs; what its [`access`](World::access) says leads past the proxy.
    pub world: World,
    /// How clients get in through the proxy.
    pub access: Access,
    /// The proxy's address.
    pub address: SocketAddr,
    process: Process,
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
        let folder = tempfile::tempdir().expect("there is a temporary directory");
        let ports = Ports {
            edge: free_port(),
            gateway: free_port(),
            admin: free_port(),
        };
        let settings = change(shipped(kind, &authority, &ports));
        let file = folder.path().join("settings");
        fs::write(&file, settings).expect("a temporary file can be written");
        let process = spawn(kind, &file, folder.path());
        until_listening(&process, ports.edge).await;
        let url = format!("https://127.0.0.1:{}", ports.edge);
        let ca = authority.ca().display().to_string();
        let options = options
            .foreign_hops()
            .gateway("listen", format!("127.0.0.1:{}", ports.gateway))
            .gateway("admin", format!("127.0.0.1:{}", ports.admin))
            .supervisor("gateway", vec![url.clone()])
            .supervisor("ca", ca);
        let world = World::start(Topology::PLAINTEXT, options).await;
        let mut access = Access::new([url]);
        access.ca = Some(authority.ca());
        Self {
            world,
            access,
            address: (Ipv4Addr::LOCALHOST, ports.edge).into(),
            process,
            _files: (folder, authority),
        }
    }

    /// Ends the world, then the proxy.
    ///
    /// # Panics
    ///
    /// As [`World::settle`], or if the proxy has died.
    pub async fn settle(self) {
        assert!(self.process.is_running(), "{}", self.process);
        self.world.settle().await;
    }
}

struct Ports {
    edge: u16,
    gateway: u16,
    admin: u16,
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
        Kind::Haproxy => {
            let mut command = daemon("haproxy");
            command.args(["-db", "-f"]);
            command
        }
    };
    command.arg(settings).stdin(Stdio::null());
    Process::spawn(command).expect("the proxy is installed")
}

/// The shipped settings with free ports and the test's certificates; they are the same otherwise.
fn shipped(kind: Kind, authority: &Authority, ports: &Ports) -> String {
    let certificate = authority.server().expect("a certificate can be made");
    let (name, changes) = match kind {
        Kind::Nginx => (
            "nginx.conf",
            vec![
                ("listen 443", format!("listen 127.0.0.1:{}", ports.edge)),
                (
                    "server 127.0.0.1:7070",
                    format!("server 127.0.0.1:{}", ports.gateway),
                ),
                ("/etc/tidegate/tls/edge.crt", text(&certificate.cert)),
                ("/etc/tidegate/tls/edge.key", text(&certificate.key)),
            ],
        ),
        Kind::Haproxy => (
            "haproxy.cfg",
            vec![
                ("bind :443", format!("bind 127.0.0.1:{}", ports.edge)),
                ("127.0.0.1:7070", format!("127.0.0.1:{}", ports.gateway)),
                ("port 7071", format!("port {}", ports.admin)),
                ("/etc/tidegate/tls/edge.pem", text(&joined(&certificate))),
            ],
        ),
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy/proxies")
        .join(name);
    let mut settings = fs::read_to_string(&path).expect("the settings are shipped");
    for (from, to) in changes {
        settings = replaced(&settings, from, &to);
    }
    settings
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
