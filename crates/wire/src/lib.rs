//! The wire: what Tidegate's words look like as gRPC messages, metadata and status.
//!
//! Everything a peer sends is parsed here, once, into the closed types of `lifecycle`; what is
//! generated from `proto/` does not leave this crate. Nothing here does I/O.
//!
//! | module | what it reads and writes |
//! |---|---|
//! | [`frame`] | the frames of byte streams, payload passed through undecoded |
//! | [`exec`] | what is said to a command and by one |
//! | [`message`] | gRPC's length prefix, for everything else |
//! | [`session`] | what the two ends of a control stream say |
//! | [`status`] | why something ended, as gRPC status; the only place that knows which code is whose |
//! | [`metadata`] | paths, header names and what is in them |
//! | [`unary`] | the unary methods as a trait and a client of plain types |

mod cause;
mod convert;
mod decode;
pub mod exec;
pub mod frame;
pub mod message;
pub mod metadata;
mod proto;
pub mod session;
pub mod status;
pub mod unary;

pub use decode::DecodeError;
