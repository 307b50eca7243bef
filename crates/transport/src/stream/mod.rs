//! The two halves of a stream, the same on either side of a connection.

mod body;
mod recv;
mod send;

pub use recv::{Received, RecvHalf};
pub use send::SendHalf;

pub(crate) use body::{Incoming, Upload};
pub(crate) use send::Outgoing;
