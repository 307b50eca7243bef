//! The hop between two gateways: how one asks another for a stream, and whom the other believes.
//!
//! ```text
//!   the gateway that the client talks to            the gateway that has the session
//!   Peers ── a few connections per lane ──▶ PeerRelay ──▶ Doorkeeper
//! ```
//!
//! [`Peers`] opens PeerRelay on a pooled connection and waits for the owner's answer; what comes of it
//! is an end like any other, which a [`Tunnel`](tidegate_bridge::Tunnel) joins with the client's.
//! Nothing of the client's is sent before the owner has answered: that is what makes it safe to ask
//! another gateway. [`Doorkeeper`] decides whether a gateway that asks is the one it says it is.
//!
//! What this crate must not do: choose whom to ask, or try again. Its caller knows the directory.

mod doorkeeper;
mod peers;
mod slot;

pub use doorkeeper::{Doorkeeper, PeerName, PeerNameError, Trust};
pub use peers::{PeerCall, PeerSettings, Peers, Unopened};
