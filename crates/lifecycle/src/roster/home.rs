//! One of the sessions that a supervisor wants.

use std::time::Instant;

use super::Seat;
use crate::id::{GatewayId, SessionId};
use crate::redial::{Bounds, Ended, Next, Redial};

/// A session that stands and takes new relays.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) seat: Seat,
    pub(super) session: SessionId,
    pub(super) gateway: GatewayId,
    pub(super) place: usize,
    pub(super) since: Instant,
    /// Its gateway has asked for another one elsewhere.
    pub(super) moving: bool,
}

/// What is done about the next session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// Nothing: the present one will do.
    None,
    /// It is dialled for then.
    Due {
        /// When.
        at: Instant,
    },
    /// It is dialled for as soon as there is a place.
    Waiting,
    /// It is dialled for.
    Dialling {
        /// The attempt's name.
        seat: Seat,
        /// Where.
        place: usize,
    },
}

#[derive(Debug)]
pub(super) struct Home {
    pub(super) redial: Redial,
    pub(super) held: Option<Held>,
    pub(super) attempt: Attempt,
    /// Where the search for a place begins.
    pub(super) from: usize,
    /// The session that was lost last, until there is another.
    pub(super) replaces: Option<SessionId>,
}

impl Home {
    pub(super) const fn new(index: usize, places: usize, bounds: Bounds) -> Self {
        Self {
            redial: Redial::new(places, bounds),
            held: None,
            attempt: Attempt::None,
            from: index,
            replaces: None,
        }
    }

    pub(super) fn holds(&self, seat: Seat) -> bool {
        self.held.as_ref().is_some_and(|held| held.seat == seat)
    }

    /// Whether `seat` is its session, or its attempt at one.
    pub(super) fn is_of(&self, seat: Seat) -> bool {
        self.holds(seat)
            || matches!(self.attempt, Attempt::Dialling { seat: mine, .. } if mine == seat)
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        match self.attempt {
            Attempt::Due { at } => at <= now,
            Attempt::Waiting => true,
            Attempt::None | Attempt::Dialling { .. } => false,
        }
    }

    /// The session that its next one takes over from.
    pub(super) fn predecessor(&self) -> Option<SessionId> {
        let held = self.held.as_ref().map(|held| held.session.clone());
        held.or_else(|| self.replaces.clone())
    }

    /// Looks for a session elsewhere at once. Asked again, it does not begin again.
    pub(super) fn ask_to_move(&mut self, places: usize, now: Instant) {
        let Some(held) = self.held.as_mut().filter(|held| !held.moving) else {
            return;
        };
        held.moving = true;
        let stood = now.saturating_duration_since(held.since);
        self.from = held.place + 1;
        self.redial.resize(places);
        self.redial.moves(stood);
        self.attempt = Attempt::Due { at: now };
    }

    /// A session of ours at the same gateway has ended its own: another gateway is looked for.
    pub(super) fn lose_to_ourselves(&mut self, now: Instant) {
        self.held = None;
        if self.attempt == Attempt::None {
            let at = now + self.redial.duplicate();
            self.attempt = Attempt::Due { at };
        }
    }

    /// Its session, or its attempt at one, is over.
    pub(super) fn ended(
        &mut self,
        seat: Seat,
        how: &Ended,
        places: usize,
        jitter: f64,
        now: Instant,
    ) -> Next {
        self.redial.resize(places);
        let before = self.redial.current();
        let lost = self.held.take_if(|held| held.seat == seat);
        let stood = lost
            .as_ref()
            .map(|held| now.saturating_duration_since(held.since));
        let next = self.redial.ended(how, stood, jitter, now);
        if let Some(lost) = lost {
            self.from = lost.place;
            self.replaces = Some(lost.session);
        }
        let Next::Dial { address, after } = next else {
            return next;
        };
        if address != before {
            self.from += 1;
        }
        let at = now + after;
        self.attempt = match self.attempt {
            // A successor is being looked for already.
            Attempt::Dialling { seat: other, .. } if other != seat => self.attempt,
            Attempt::Due { at: earlier } if earlier < at => Attempt::Due { at: earlier },
            Attempt::Waiting => Attempt::Waiting,
            Attempt::None | Attempt::Due { .. } | Attempt::Dialling { .. } => Attempt::Due { at },
        };
        next
    }
}
