//! The byte streams that clients have open: each from its first message to its end.

mod forward;
mod opening;
mod registry;
mod resolve;
mod watchdog;

pub(crate) use forward::serve;
pub(crate) use registry::{Entry, Kind, Streams, Subject};
pub(crate) use resolve::check_known;
pub(crate) use watchdog::watch_memory;
