//! Supervisors' sessions: each is one task that owns its control stream, its machine and the table
//! of its relays. Others ask it for relays and tell it of their end; nobody locks it.

mod channels;
mod conclude;
mod handle;
mod hello;
mod leash;
mod registry;
mod run;
mod serve;
mod wish;

pub(crate) use handle::{Ending, Session};
pub(crate) use leash::Leash;
pub(crate) use registry::Sessions;
pub(crate) use serve::serve;
pub(crate) use wish::Wish;
