//! The gateway: accepts clients and supervisors, and carries streams between them.
//!
//! ```text
//!  client ──ForwardTcp──▶ stream::forward ─▶ Tunnel ◀─ relay ◀──RelayStream── supervisor
//!                             │ opening: find a session, ask, wait for the claim      │
//!                             └────────▶ session::run ──RelayOpen──▶ ConnectSupervisor┘
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`config`] | reads what an operator set, and says where it came from |
//! | [`daemon`] | the program around a gateway: command line, log, signals |
//! | `gateway`, `departure` | listens, hands connections to threads, leaves, stops |
//! | `stream` | each client's stream: admission, opening, the tunnel, the registry, the watchdog |
//! | `session` | each supervisor's session: one task, its machine and its relays |
//! | `relay`, `claims` | how a supervisor's call finds the stream that waits for it |
//! | `unary` | the answers to unary methods |
//! | `admin`, `metrics` | health and metrics |
//!
//! What this crate must not do: decide protocol (`lifecycle` does), or know a message's encoding
//! (`wire` does).

mod admin;
mod claims;
pub mod config;
pub mod daemon;
mod departure;
mod first;
mod gateway;
mod handler;
mod metrics;
mod relay;
mod session;
mod state;
mod stream;
mod tickets;
mod unary;
mod waiting;

pub use config::Config;
pub use gateway::{BindError, Gateway};
