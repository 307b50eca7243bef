//! A local port whose connections lead to a target inside the sandbox.
//!
//! What serves it is the shipped command, `tidegate port-forward`, or the SDK in a thread of the
//! test: `TIDEGATE_E2E_CLIENT` is `cli` or `sdk`, unless the test needs one of them.

mod cli;
mod report;
mod sdk;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_testkit::process::Process;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::wait::GENEROUS;

pub use self::report::Closed;
use self::report::Reports;

/// What a forward is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// `tidegate port-forward`.
    Cli,
    /// The SDK, in a thread of the test.
    Sdk,
}

impl Via {
    /// What the environment wants.
    pub fn from_env() -> Self {
        match std::env::var("TIDEGATE_E2E_CLIENT").as_deref() {
            Ok("sdk") => Self::Sdk,
            Ok("cli") | Err(_) => Self::Cli,
            Ok(other) => panic!("TIDEGATE_E2E_CLIENT is {other:?}, neither cli nor sdk"),
        }
    }
}

/// How a gateway is reached.
pub type Access = tidegate_client::Config;

/// A listener on loopback that leads to one target; clones are the same one.
#[derive(Clone, Debug)]
pub struct Forward(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    reports: Reports,
    server: Server,
}

#[derive(Debug)]
enum Server {
    Cli(Process),
    Sdk(sdk::Listener),
}

impl Forward {
    /// Listens on a free port and leads its connections to `target`, `HOST:PORT`, in the sandbox.
    ///
    /// # Panics
    ///
    /// If there is no command, or no port.
    pub async fn start(via: Via, access: &Access, target: &str) -> Self {
        let inner = match via {
            Via::Cli => cli::start(access, target).await,
            Via::Sdk => sdk::start(access, target),
        };
        Self(Arc::new(inner))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Connects to it, as a local program does.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub async fn connect(&self) -> Socket {
        let socket = Socket::connect(self.0.address).await;
        socket.expect("the forward listens")
    }

    /// Waits until the stream of the local connection from `peer` has ended, and says how.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn closed(&self, peer: SocketAddr) -> Closed {
        self.0.reports.closed(peer, GENEROUS).await
    }

    /// As [`closed`](Self::closed), of a socket that is still there.
    ///
    /// # Panics
    ///
    /// As [`closed`](Self::closed).
    pub async fn closed_of(&self, socket: &Socket) -> Closed {
        let peer = socket.local_address().expect("the socket was connected");
        self.closed(peer).await
    }

    /// How the stream of `peer` has ended, if it has.
    pub fn closed_now(&self, peer: SocketAddr) -> Option<Closed> {
        self.0.reports.closed_now(peer)
    }

    /// The command's process, where there is one.
    pub fn process(&self) -> Option<&Process> {
        match &self.0.server {
            Server::Cli(process) => Some(process),
            Server::Sdk(_) => None,
        }
    }

    /// Kills whatever serves it, as SIGKILL does: nothing is said to anybody.
    pub fn kill(&self) {
        match &self.0.server {
            Server::Cli(process) => process.kill(),
            Server::Sdk(listener) => listener.stop(),
        }
    }

    /// Waits until no local connection is open, and says which were after `bound`.
    pub(crate) async fn idle(&self, bound: Duration) -> Result<(), String> {
        match &self.0.server {
            Server::Cli(process) => cli::idle(process, self.0.address, bound).await,
            Server::Sdk(listener) => listener.idle(bound).await,
        }
    }

    /// Ends it in an orderly way.
    pub(crate) async fn end(&self) {
        match &self.0.server {
            Server::Cli(process) => cli::end(process).await,
            Server::Sdk(listener) => listener.stop(),
        }
    }
}
