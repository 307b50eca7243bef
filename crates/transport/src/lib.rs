//! HTTP/2 as Tidegate needs it: streams whose every ending is told apart, on [`h2`] itself.
//!
//! The usual gRPC libraries let a cancelled request look like a finished one, and let nothing
//! through a stream that is blocked, not even its end. Below them both are known, so the
//! bidirectional RPCs run here on `h2`: bytes in and out ([`RecvHalf`], [`SendHalf`]), trailers,
//! resets, and one closed vocabulary for what can go wrong ([`Lost`]). Unary RPCs are ordinary
//! tonic services on the same connection.
//!
//! What this crate does not know: gRPC messages, protobuf, sessions, causes. It moves bytes and
//! says how each direction ended; what that means is decided above.
//!
//! ```text
//!  client::Endpoint ──connect──▶ client::Connection ──open──▶ SendHalf, ResponseHead ─▶ RecvHalf
//!                    (proxy, TLS)        │
//!                                        └── tonic clients (unary)
//!  server::Server ──serve──▶ streaming path ─▶ StreamHandler gets a ServerStream
//!                            any other path ─▶ tonic Routes
//! ```

mod error;
mod io;
mod keepalive;
mod life;
mod listener;
mod outbox;
mod payload;
mod settings;
mod shard;

pub mod client;
pub mod proxy;
pub mod server;
pub mod stream;
pub mod tls;

pub use client::{
    ConnectError, Connection, CredentialFault, Endpoint, EndpointError, Obstacle, OpenError, Pool,
    PoolError, ResponseHead,
};
pub use error::Lost;
pub use h2::Reason;
pub use listener::{Listener, listen};
pub use payload::{Buffered, Ledger, Payload};
pub use proxy::{Proxy, ProxyRules};
pub use server::{ConnectionControl, ConnectionInfo, Respond, Server, ServerStream, StreamHandler};
pub use settings::{Ping, Settings};
pub use shard::{Shard, Shards};
pub use stream::{Received, RecvHalf, SendHalf};
pub use tls::{ClientTls, Credentials, ServerTls, TlsError, TlsFile, certificate_names};
