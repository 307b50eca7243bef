//! A released gateway, as far as a supervisor sees it: it accepts sessions and opens relays. Its
//! client is the test.

mod relay;
mod service;
mod session;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    time::Duration,
};

use tokio::sync::{Mutex, mpsc};
use tonic::transport::{Server, server::TcpIncoming};

use self::service::{OpenShell, Shared};
pub use self::{
    relay::{Relay, RelayEnd},
    session::Session,
};
use super::Dialect;
use crate::{
    background::Background,
    wait::{self, GENEROUS},
};

/// How many sessions may wait for the test to take them.
const WAITING: usize = 1024;

/// How the gateway behaves.
#[derive(Clone, Copy, Debug)]
pub struct GatewayOptions {
    /// What it speaks.
    pub dialect: Dialect,
    /// The heartbeat interval it offers.
    pub heartbeat: Duration,
    /// Whether it sends heartbeats of its own.
    pub sends_heartbeats: bool,
}

impl Default for GatewayOptions {
    fn default() -> Self {
        Self {
            dialect: Dialect::Old,
            heartbeat: Duration::from_secs(15),
            sends_heartbeats: true,
        }
    }
}

/// A gateway on its own thread; dropping it closes its port and all its connections.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    sessions: Mutex<mpsc::Receiver<Session>>,
    _thread: Background,
}

impl Gateway {
    /// Listens on a free port of 127.0.0.1, in plaintext.
    ///
    /// # Errors
    ///
    /// If there is no free port or thread.
    pub fn start(options: GatewayOptions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (opened, sessions) = mpsc::channel(WAITING);
        let thread = Background::start("legacy-gateway", move || async move {
            let listener = tokio::net::TcpListener::from_std(listener);
            let incoming = TcpIncoming::from(listener.expect("a listener registers"));
            let service = OpenShell::new(Shared::new(options, opened));
            let served = Server::builder()
                .serve_with_incoming(service, incoming.with_nodelay(Some(true)))
                .await;
            served.expect("a listener on loopback does not fail");
        })?;
        Ok(Self {
            address,
            sessions: Mutex::new(sessions),
            _thread: thread,
        })
    }

    /// Returns the address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the next session that a supervisor opens.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn session(&self) -> Session {
        let next = async { self.sessions.lock().await.recv().await };
        let session = wait::within(GENEROUS, "a supervisor's session", next).await;
        session.expect("the gateway's thread lives as long as `self`")
    }
}
