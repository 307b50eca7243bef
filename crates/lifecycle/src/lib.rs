//! The pure core of Tidegate: what a stream and a session may do, in which order, and why they end.
//!
//! Everything here is a value. Nothing waits, reads a clock, owns a socket or knows how a frame is
//! written: events and the time go in, commands and the next deadline come out. The shells above
//! (`bridge`, `gateway`, `supervisor`, `client`) own sockets, tasks and clocks, and decide nothing.
//!
//! | module | what it answers |
//! |---|---|
//! | [`state`] | what one stream may do next on one hop |
//! | [`leg`] | how FIN and the end of a stream are written on one hop, given what was negotiated |
//! | [`relay`] | what an event on one leg means for the other, and when a stream is finished |
//! | [`session`] | what a supervisor's control stream may do next, from both ends |
//! | [`cause`] | who ended a stream, and why |
//! | [`loss`] | why, when a neighbour is lost without a word |
//! | [`capability`] | what two neighbours both understand |
//! | [`exec`] | what a command is, how it ends, and in which order both are said |
//! | [`limits`] | every timeout and bound, with its default |
//! | [`redial`], [`roster`] | when a supervisor tries which gateway again, and which it has sessions with |
//! | [`drain`] | how a gateway leaves without breaking anything |
//! | [`id`], [`target`] | names that cannot be mixed up, and where a stream leads |
//! | [`value`] | durations and sizes as people write them |

#![deny(clippy::wildcard_enum_match_arm)]

pub mod capability;
pub mod cause;
pub mod drain;
pub mod exec;
pub mod id;
mod joint;
pub mod leg;
pub mod limits;
pub mod loss;
pub mod ownership;
pub mod redial;
pub mod relay;
pub mod roster;
pub mod session;
pub mod state;
pub mod target;
pub mod value;

pub use capability::{Capabilities, Capability, HalfClose};
pub use cause::{Cause, End, Origin, Reason};
pub use target::Target;
