//! The Rust SDK: open a stream to a port inside a sandbox, and believe how it ends.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_client::{Client, Config, SandboxName, Target};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! let client = Client::new(&Config::new(["http://127.0.0.1:7070"]))?;
//! let sandbox = SandboxName::parse("local")?;
//! let mut stream = client.forward(&sandbox, Target::tcp("localhost", 80)?).await?;
//! stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
//! stream.shutdown().await?; // FIN: the answer still arrives
//! let mut answer = Vec::new();
//! stream.read_to_end(&mut answer).await?; // an error, never a short answer, if it was cut
//! # Ok(())
//! # }
//! ```
//!
//! A [`Stream`] that is dropped is aborted: the target sees a reset, never an end of file.
//! [`Client::exec`] runs a command: see [`exec`].
//! [`Client::tunnel`] joins a stream to something that exists already, such as a local socket.

mod api;
mod client;
mod config;
pub mod exec;
mod hand;
mod stream;
mod unreached;

pub use client::Client;
pub use config::{Config, ConfigError};
pub use stream::Stream;
pub use tidegate_bridge::{Handle, Opened, Outcome, PipeEnd, Plug, SocketEnd, Tunnel, harden};
pub use tidegate_lifecycle::cause::{Cause, End, Origin, Reason};
pub use tidegate_lifecycle::id::{SandboxName, SessionId, StreamId};
pub use tidegate_lifecycle::limits::StreamLimits;
pub use tidegate_lifecycle::relay::Side;
pub use tidegate_lifecycle::value::{Dur, Size};
pub use tidegate_lifecycle::{Capabilities, Capability, Target};
pub use tidegate_transport::Buffered;
pub use tidegate_wire::unary::Stream as StreamInfo;
pub use tidegate_wire::unary::{Deletion, GatewayInfo, Health, Phase, Sandbox, Session, User};

/// The name of the gRPC code that belongs to a reason, such as `NOT_FOUND`.
pub fn code_name(reason: Reason) -> &'static str {
    tidegate_wire::status::name(tidegate_wire::status::code(reason))
}
