//! The streams that clients have open: each from its first message to its end.
//!
//! | module | what it does |
//! |---|---|
//! | `forward`, `exec` | the first message of each kind, and the tunnel that it leads to |
//! | `carried` | what they have in common: how a stream is taken in, ends, and is told about |
//! | `opening`, `resolve` | the path to the supervisor |
//! | `registry`, `subject` | which streams there are, and whether there may be more |
//! | `watchdog` | what is done about too many bytes |

mod carried;
mod exec;
mod forward;
mod opening;
mod registry;
mod resolve;
mod subject;
mod watchdog;

pub(crate) use exec::{Door, serve as exec};
pub(crate) use forward::serve as forward;
pub(crate) use registry::{Entry, Streams};
pub(crate) use resolve::check_known;
pub(crate) use subject::{Kind, Subject};
pub(crate) use watchdog::watch_memory;
