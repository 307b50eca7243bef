//! What a control stream may do next, seen from both of its ends.
//!
//! ```text
//! AwaitHello ─hello─▶ Live ─goodbye, replaced─▶ DrainOnly ─last relay ended, deadline─▶ Closed
//!      └───────────────┴──────── loss, violation, clean stop ──────┴──────────────────────▲
//! ```
//!
//! A gateway that leaves asks for a session elsewhere, and the one that it has stays live until that
//! one stands: no instant is without. Only then is it replaced, carries what it has and takes nothing
//! new. It is the supervisor that refuses what a gateway still asks of a session that was replaced.
//!
//! [`GatewaySession`] is the gateway's end, [`SupervisorSession`] the supervisor's. Both keep the
//! same [`Heartbeat`]. They hold no relays: which channel belongs to a session is the shell's
//! knowledge, what may be said about one is decided here.

mod gateway;
mod heartbeat;
mod message;
mod supervisor;

pub use gateway::{Farewell, GatewayAction, GatewaySession, GatewayState, Idle};
pub use heartbeat::{Beat, Heartbeat};
pub use message::{Accepted, FromGateway, FromSupervisor, Hello, RelayClose, RelayOpen};
pub use supervisor::{SupervisorAction, SupervisorSession, SupervisorState};

/// The major version of the protocol that this code speaks.
pub const PROTOCOL_VERSION: u32 = 1;
