//! The rule itself.

use super::{Held, Standing};
use crate::id::{GatewayId, InstanceId, SessionId};

/// A session that a gateway has accepted and wants recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// That gateway.
    pub gateway: GatewayId,
    /// The supervisor process behind the session; empty text from peers that do not say.
    pub instance: InstanceId,
    /// How many gateways the supervisor wants sessions with; none is taken for one.
    pub homes: u8,
    /// The session that it is to replace.
    pub replaces: Option<SessionId>,
}

/// What becomes of a claim, and of those before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// The place that the session gets.
    pub slot: u8,
    /// Sessions that are over: their streams end.
    pub ended: Vec<SessionId>,
    /// Sessions that take no more streams.
    pub drained: Vec<SessionId>,
}

/// Settles a claim among the sessions that its sandbox has.
pub fn settle(present: &[Held], wish: &Wish) -> Settled {
    let (ended, staying): (Vec<&Held>, Vec<&Held>) =
        present.iter().partition(|held| is_ended(held, wish));
    let mut live: Vec<&Held> = staying
        .into_iter()
        .filter(|held| held.standing == Standing::Live)
        .collect();
    live.sort_by_key(|held| held.generation);
    let replaced = live
        .iter()
        .position(|held| Some(&held.session) == wish.replaces.as_ref());
    let mut drained: Vec<&Held> = replaced.map(|at| live.remove(at)).into_iter().collect();
    // The oldest make room.
    let room = usize::from(wish.homes.max(1)) - 1;
    drained.extend(live.drain(..live.len().saturating_sub(room)));
    let names = |held: Vec<&Held>| held.into_iter().map(|it| it.session.clone()).collect();
    Settled {
        slot: free_slot(&live),
        ended: names(ended),
        drained: names(drained),
    }
}

/// Whether a session cannot stand beside the new one.
fn is_ended(held: &Held, wish: &Wish) -> bool {
    // Of those that do not say which process they are, each is taken for another.
    let same_process = held.instance == wish.instance && !wish.instance.as_str().is_empty();
    // One that was drained carries streams of a supervisor that has come back to the same gateway.
    let is_place_taken = held.gateway == wish.gateway && held.standing != Standing::DrainOnly;
    !same_process || is_place_taken
}

fn free_slot(live: &[&Held]) -> u8 {
    let is_free = |slot: &u8| live.iter().all(|held| held.slot != *slot);
    (0..=u8::MAX).find(is_free).unwrap_or(u8::MAX)
}
