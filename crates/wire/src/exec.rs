//! Commands: what is said to one and by one, between messages and [`Item`]s.
//!
//! The same items travel in two dialects, so that a gateway passes them on without knowing more of
//! them than their kind.
//!
//! | dialect | to the command | from the command |
//! |---|---|---|
//! | [`Dialect::Client`] | `ExecSandboxInput` | `ExecSandboxEvent` |
//! | [`Dialect::Relay`] | `RelayFrame.exec_input` | `RelayFrame.exec_event` |
//!
//! `PeerRelayFrame` has the same two members under the same numbers: it is the second dialect.

mod decode;
mod encode;
mod exit;
mod item;
mod reader;
mod start;

pub use self::encode::encode;
pub use self::item::{Dialect, Direction, Item, Pieces};
pub use self::reader::{First, ItemReader};
pub use self::start::{ExecRequest, Start};

#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
