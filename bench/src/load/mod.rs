//! The load: what runs through a contender, from this process to its target.

mod exchange;
mod order;
mod stalled;
mod stream;

pub(crate) use exchange::{connect_and_close, round_trips};
pub(crate) use order::{CHUNK, GO, Order, STALLED_BUFFER, open};
pub(crate) use stalled::Stalled;
pub(crate) use stream::{Direction, Flow};
