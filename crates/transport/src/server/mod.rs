//! The side that accepts: streaming paths for a [`StreamHandler`], all others for tonic.

mod driver;
mod respond;
mod serve;
mod unary;

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use http::request;
use tokio_util::sync::CancellationToken;

use crate::RecvHalf;

pub use respond::Respond;
pub use serve::Server;

/// One streaming RPC, as it arrived.
#[derive(Debug)]
pub struct ServerStream {
    /// The request's path and metadata.
    pub head: request::Parts,
    /// What the client sends.
    pub recv: RecvHalf,
    /// How to answer.
    pub respond: Respond,
    /// The connection it came on.
    pub connection: Arc<ConnectionInfo>,
}

/// What is known about a connection. Unary handlers find an `Arc` of it in the request's
/// extensions.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The client's address.
    pub peer: SocketAddr,
    /// Our address.
    pub local: SocketAddr,
    /// The client's certificate (DER), checked, where one is required.
    pub identity: Option<Arc<[u8]>>,
    /// The thread it lives on, and all that belongs to it should.
    pub shard: usize,
    /// Its end.
    pub connection: ConnectionControl,
}

/// How to end one connection.
#[derive(Clone, Debug)]
pub struct ConnectionControl {
    pub(crate) drain: CancellationToken,
    pub(crate) abort: CancellationToken,
    pub(crate) held: Arc<OnceLock<CancellationToken>>,
}

impl ConnectionControl {
    /// Keeps the connection open to new streams after its server was told to shut down, until `until`
    /// is cancelled. The first `until` counts. Without effect once GOAWAY was sent.
    pub fn hold(&self, until: &CancellationToken) {
        self.held.get_or_init(|| until.clone());
    }

    /// Waits for the moment to send GOAWAY.
    pub(crate) async fn leaving(&self) {
        match self.held.get() {
            Some(until) => until.cancelled().await,
            None => self.drain.cancelled().await,
        }
    }

    /// Sends GOAWAY, unless the connection is held. It ends when its streams have ended.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// Ends the connection at once, with every stream on it.
    pub fn abort(&self) {
        self.abort.cancel();
    }
}

/// What takes the streaming RPCs of a server.
pub trait StreamHandler: Send + Sync {
    /// Tells whether streams to `path` are for this handler.
    fn wants(&self, path: &str) -> bool;

    /// Takes a stream. Called by the task that moves the connection's frames, so it must not
    /// block: it spawns what serves the stream, on the shard that the stream names.
    fn handle(&self, stream: ServerStream);
}
