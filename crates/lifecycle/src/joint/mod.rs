//! What every machine that joins two legs has to do, whatever it carries: weigh endings, wait for
//! the word that explains one, keep the time, tell both neighbours.
//!
//! [`Relay`](crate::relay::Relay) and [`Execution`](crate::exec::Execution) add their rules: what an
//! arrival means, and when a stream is finished.

mod ending;
mod party;
#[cfg(test)]
pub(crate) mod rig;
mod side;
mod timers;

use std::time::Instant;

use crate::cause::{Cause, End, Origin, Reason};
use crate::id::HopName;
use crate::leg::{Orientation, Role, Write};
use crate::limits::{CLOSE_REASON_GRACE, StreamLimits};
use crate::loss::{Link, Loss};

pub use self::ending::Rank;
pub(crate) use self::ending::{Ending, Teller};
pub(crate) use self::party::Party;
pub use self::side::Side;

use self::ending::Patience;
use self::timers::Timers;

/// Two legs, and how the stream on them ends.
#[derive(Debug)]
pub(crate) struct Joint<L> {
    legs: [L; 2],
    /// Everything queued towards that side has been taken by it.
    flushed: [bool; 2],
    timers: Timers,
    /// The weightiest ending observed in this step.
    ending: Option<Box<Ending>>,
    patience: Option<Patience>,
    outcome: Option<Result<(), Box<End>>>,
    /// Whose neighbour ended it.
    ended_by: Option<Side>,
    hop: HopName,
    origin: Origin,
}

impl<L: Party> Joint<L> {
    pub(crate) fn new(
        legs: [L; 2],
        limits: StreamLimits,
        origin: Origin,
        hop: HopName,
        now: Instant,
    ) -> Self {
        let opening = legs.iter().any(Party::is_opening);
        Self {
            legs,
            flushed: [true; 2],
            timers: Timers::new(limits, opening, now),
            ending: None,
            patience: None,
            outcome: None,
            ended_by: None,
            hop,
            origin,
        }
    }

    pub(crate) const fn leg(&self, side: Side) -> &L {
        &self.legs[side.index()]
    }

    /// The path is open, which the downstream neighbour is being told.
    pub(crate) fn greet(&mut self) {
        self.legs[Side::Downstream.index()].greet();
    }

    pub(crate) const fn leg_mut(&mut self, side: Side) -> &mut L {
        &mut self.legs[side.index()]
    }

    /// The origin of what this hop decides.
    pub(crate) const fn origin(&self) -> Origin {
        self.origin
    }

    pub(crate) fn set_deadline(&mut self, deadline: Instant) {
        self.timers.operation = Some(deadline);
    }

    /// Whether what arrives still matters: nothing has ended the stream yet, nor may have.
    pub(crate) const fn is_listening(&self) -> bool {
        self.outcome.is_none() && self.patience.is_none()
    }

    /// Something came from one side and goes to the other.
    pub(crate) fn hand_on(&mut self, from: Side, now: Instant) {
        self.timers.heard(from, now);
        self.flushed[from.other().index()] = false;
    }

    pub(crate) fn note(&mut self, rank: Rank, teller: Teller, end: End) {
        let weaker = |old: &Ending| old.rank > rank;
        if self.outcome.is_none() && self.ending.as_deref().is_none_or(weaker) {
            self.ending = Some(Box::new(Ending { rank, teller, end }));
        }
    }

    /// The neighbour on `side` broke a rule.
    pub(crate) fn violate(&mut self, side: Side, reason: Reason, message: impl Into<String>) {
        let end = End::new(self.neighbour(side), reason, message);
        self.note(Rank::Violation, Teller::Violator(side), end);
    }

    /// The neighbour on `side` ended its direction where it may not.
    pub(crate) fn truncate(&mut self, side: Side, missing: &str) {
        let who = self.neighbour(side);
        let message = format!("the {who} ended the stream before {missing}");
        let end = End::new(who, Loss::Broken.reason(self.link(side), false), message);
        self.note(Rank::Transport, Teller::Quitter(side), end);
    }

    /// The neighbour on `side` ended the stream, or was lost. What happens to a neighbour after its
    /// last good word, when it has all that was for it, is not this stream's concern.
    pub(crate) fn end(&mut self, side: Side, rank: Rank, end: End) {
        let concluded = self.leg(side).has_concluded() && self.is_flushed(side);
        if !concluded {
            self.note(rank, Teller::Neighbour(side), end);
        }
    }

    pub(crate) fn close(&mut self, end: End) {
        self.note(Rank::Own, Teller::Here, end);
    }

    pub(crate) fn flushed(&mut self, side: Side) {
        if !self.leg(side).has_writes() {
            self.let_go(side);
        }
    }

    /// Nothing waits for `side` any more, or nobody waits for it to be taken.
    pub(crate) fn let_go(&mut self, side: Side) {
        self.flushed[side.index()] = true;
        self.timers.unblocked(side);
    }

    pub(crate) const fn is_flushed(&self, side: Side) -> bool {
        self.flushed[side.index()]
    }

    pub(crate) fn progressed(&mut self, side: Side, now: Instant) {
        self.timers.progressed(side, now);
    }

    pub(crate) fn blocked(&mut self, side: Side, now: Instant) {
        self.timers.blocked(side, now);
    }

    /// Fills silence, and notices deadlines.
    pub(crate) fn tick(&mut self, now: Instant) {
        if self.timers.is_opening() && !self.legs.iter().any(Party::is_opening) {
            self.timers.opened(now);
        }
        for side in Side::BOTH {
            if self.timers.take_keepalive(side, &self.legs, now) {
                self.leg_mut(side).keep_alive();
            }
        }
        if let Some((reason, message)) = self.timers.expired(&self.legs, now) {
            let end = End::new(self.origin, reason, message);
            self.note(Rank::Deadline, Teller::Here, end);
        }
    }

    /// The ending that counts now. Of several in one step the first by [`Rank`]; a bare loss that
    /// may be explained counts when nobody has explained it in time.
    pub(crate) fn decide(&mut self, now: Instant) -> Option<Box<Ending>> {
        let patience = &self.patience;
        let outlasted =
            |news: &mut Box<Ending>| patience.as_ref().is_some_and(|it| it.outlasts(news));
        let _ = self.ending.take_if(outlasted);
        if let Some(ending) = self.ending.take() {
            self.patience = None;
            let explicable = |side| self.leg(side).role().may_be_explained();
            if !ending.bare_loss().is_some_and(explicable) {
                return Some(ending);
            }
            self.patience = Some(Patience::Word(ending, now + CLOSE_REASON_GRACE));
        }
        match self.patience.take() {
            Some(Patience::Word(loss, until)) if until <= now => Some(loss),
            other => {
                self.patience = other;
                None
            }
        }
    }

    /// An ending by the upstream neighbour waits until downstream has what was on its way.
    pub(crate) fn spare(&mut self, end: &End) {
        self.leg_mut(Side::Upstream).cut(end);
        self.patience = Some(Patience::Delivery);
    }

    /// Whether downstream is spared, and has all that was on its way.
    pub(crate) const fn has_spared(&self) -> bool {
        matches!(self.patience, Some(Patience::Delivery)) && self.is_flushed(Side::Downstream)
    }

    /// Ends the stream, and tells whoever does not know.
    pub(crate) fn conclude(&mut self, ending: Ending) {
        let Ending { teller, end, .. } = ending;
        let far = end.seen_from_afar().via(&self.hop);
        match teller {
            Teller::Here | Teller::Quitter(_) => {}
            Teller::Neighbour(side) => {
                self.ended_by = Some(side);
                self.leg_mut(side).cut(&end);
            }
            Teller::Violator(side) => {
                let own = end.clone().via(&self.hop);
                self.leg_mut(side).abort(&own);
            }
        }
        for leg in &mut self.legs {
            leg.abort(&far);
        }
        self.patience = None;
        self.outcome = Some(Err(Box::new(end)));
    }

    /// Ends the stream well, on both legs that have not ended otherwise.
    pub(crate) fn finish(&mut self) {
        for leg in &mut self.legs {
            leg.complete();
        }
        self.patience = None;
        self.outcome = Some(Ok(()));
    }

    /// The same end as the other neighbour reads it.
    pub(crate) fn passed_on(&self, end: &End) -> End {
        end.seen_from_afar().via(&self.hop)
    }

    /// When a silence that began with the last movement is long enough for a legacy client.
    pub(crate) fn legacy_grace(&self) -> Instant {
        self.timers.legacy_grace()
    }

    pub(crate) fn poll_write(&mut self, side: Side) -> Option<Write> {
        self.leg_mut(side).poll_write()
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.outcome.is_some() {
            return None;
        }
        let word = match self.patience {
            Some(Patience::Word(_, until)) => Some(until),
            Some(Patience::Delivery) | None => None,
        };
        [word, self.timers.next(&self.legs)]
            .into_iter()
            .flatten()
            .min()
    }

    pub(crate) fn outcome(&self) -> Option<Result<(), &End>> {
        match self.outcome.as_ref()? {
            Ok(()) => Some(Ok(())),
            Err(end) => Some(Err(end)),
        }
    }

    pub(crate) const fn ended_by(&self) -> Option<Side> {
        self.ended_by
    }

    pub(crate) fn cause(&self) -> Option<Cause> {
        self.outcome().map(|outcome| match outcome {
            Ok(()) => Cause::Finished,
            Err(end) => end.cause(),
        })
    }

    /// What it is a loss of, if the neighbour on that side is lost.
    fn link(&self, side: Side) -> Link {
        match side {
            _ if !self.leg(side).is_between_gateways() => Link::Stream,
            Side::Upstream => Link::Owner,
            Side::Downstream => Link::Requester,
        }
    }

    /// Who is on that side.
    fn neighbour(&self, side: Side) -> Origin {
        match (self.leg(side).role(), side) {
            _ if self.leg(side).is_between_gateways() => Origin::Peer,
            (Role::Socket, Side::Downstream) | (Role::Acceptor(Orientation::Forward), _) => {
                Origin::Client
            }
            (Role::Socket, Side::Upstream) => Origin::Target,
            (Role::Acceptor(Orientation::Backward), _) => Origin::Supervisor,
            (Role::Opener(_), _) => Origin::Gateway,
        }
    }
}
