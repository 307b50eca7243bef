//! Who has a session with a sandbox: what a claim does to the claims before it.
//!
//! A sandbox has at most one session *that takes streams* at each gateway, and at most as many as its
//! supervisor wants homes; what goes beyond gives way:
//!
//! ```text
//!              same process                       another process
//!  same gateway │ other gateway                   any gateway
//!  ─────────────┼──────────────────────────────   ───────────
//!  ends         │ stays, while there is room;     ends
//!               │ else the one that is named,
//!               │ else the oldest: is drained
//! ```
//!
//! A claim is never refused. Which of two is newer is decided by their generations, and those by the
//! directory; a rule that is given the same claims in the same order says the same everywhere.

mod claim;
#[cfg(test)]
mod tests;

use crate::id::{GatewayId, Generation, InstanceId, SessionId};

pub use self::claim::{Settled, Wish, settle};

/// What a recorded session is good for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Standing {
    /// Takes streams.
    Live,
    /// Another took its place: carries what it has, and takes streams only if there is no other.
    DrainOnly,
    /// Its gateway has not been heard of for too long. It may have lost the directory and nothing else:
    /// the last resort.
    Lapsed,
}

impl Standing {
    /// Every standing, the best first.
    pub const ALL: [Self; 3] = [Self::Live, Self::DrainOnly, Self::Lapsed];
}

/// A session, as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The gateway that accepted it.
    pub gateway: GatewayId,
    /// The session.
    pub session: SessionId,
    /// The supervisor process behind it; empty text from peers that do not say.
    pub instance: InstanceId,
    /// The session's fencing token.
    pub generation: Generation,
    /// Which of its sandbox's places it has.
    pub slot: u8,
    /// What it is good for.
    pub standing: Standing,
}

/// Puts the best first: what takes streams before what does not, and the newer before the older.
pub fn order<T>(homes: &mut [T], held: impl Fn(&T) -> (Standing, Generation)) {
    homes.sort_by_key(|home| {
        let (standing, generation) = held(home);
        (standing, std::cmp::Reverse(generation))
    });
}
