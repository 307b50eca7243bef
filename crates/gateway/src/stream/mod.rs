//! The streams that clients have open: each from its first message to its end.
//!
//! | module | what it does |
//! |---|---|
//! | `forward`, `exec` | the first message of each kind, and the tunnel that it leads to |
//! | `carried` | what they have in common: how a stream is taken in, ends, and is told about |
//! | `peer` | the same for a stream that another gateway took in |
//! | `opening`, `route` | the path to the supervisor, or to the gateway that has its session |
//! | `registry`, `subject` | which streams there are, and whether there may be more |
//! | `watchdog` | what is done about too many bytes |

mod carried;
mod exec;
mod forward;
mod opening;
mod peer;
mod registry;
mod route;
mod subject;
mod watchdog;

pub(crate) use exec::{Door, serve as exec};
pub(crate) use forward::serve as forward;
pub(crate) use peer::serve as peer;
pub(crate) use registry::{Entry, Streams};
pub(crate) use route::check_known;
pub(crate) use subject::{Kind, Subject};
pub(crate) use watchdog::watch_memory;
