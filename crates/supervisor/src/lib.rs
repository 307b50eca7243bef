//! The supervisor: it lives in the sandbox, dials home to a gateway, and connects the streams that
//! people open to the targets they ask for.
//!
//! ```text
//!             ┌───────────────── Supervisor ─────────────────┐
//!  gateway ◀──┤ control stream ── Session ── asks ─▶ relay   ├──▶ target
//!             │                                        │     │
//!          ◀──┤ data connection (one per lane) ◀── Tunnel    │
//!             └──────────────────────────────────────────────┘
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`config`] | what the operator has said |
//! | `homes` | which gateways are dialled when, for as long as the supervisor runs |
//! | `session` | one control stream, from hello to its end |
//! | `relay` | one stream, from the request for it to its end |
//! | `lanes` | the data connections that relays run on |
//! | `dial` | from a target's name to a connected socket, and what is never connected to |
//! | `exec` | commands as streams: between a tunnel and the runner |
//! | [`runner`] | commands: their processes, what they read and write, and how they are made to end |
//! | `streams`, `memory` | what is open, what it holds, and the bound on both |
//!
//! The control stream has a connection and a task of its own: no target, no stalled stream and no
//! failed relay is waited for there. [`Supervisor`] is a library so that other programs and tests
//! can run one; the program `tidegate-supervisor` adds flags, logs and signals.

mod allow;
mod context;
mod dial;
mod exec;
mod homes;
mod lanes;
mod memory;
mod metrics;
mod phase;
mod relay;
mod session;
mod streams;
mod supervisor;

pub mod config;
#[cfg(target_os = "linux")]
pub mod runner;

pub use allow::{AllowRule, AllowRuleError, Allowlist};
pub use config::Config;
pub use phase::Phase;
pub use supervisor::{StartError, StopReason, Supervisor};
