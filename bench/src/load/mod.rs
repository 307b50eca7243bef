//! The load: what runs through a contender, from this process to its target.

mod exchange;
mod order;
mod sandbox;
mod stalled;
mod stream;

pub(crate) use exchange::{close, connect_and_close, round_trips, round_trips_on};
pub(crate) use order::{CHUNK, GO, Order, STALLED_BUFFER, open};
pub(crate) use sandbox::{READY, Running, Sandbox, command};
pub(crate) use stalled::Stalled;
pub(crate) use stream::{Direction, Flow};
