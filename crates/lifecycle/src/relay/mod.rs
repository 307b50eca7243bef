//! Two legs joined: what an event on one side means for the other, and when a stream is finished.
//!
//! ```text
//!                 ┌──────────────── Relay ────────────────┐
//!   client  ◀──▶  │ downstream leg            upstream leg │  ◀──▶  target
//!                 │   FIN heard  ──────────▶  finish       │
//!                 │   finish     ◀──────────  FIN heard    │
//!                 │   abort      ◀── ending ─▶  abort      │
//!                 └────────────────────────────────────────┘
//! ```
//!
//! The same machine runs in the client (local socket, RPC), in a gateway (RPC, RPC) and in the
//! supervisor (RPC, target socket). It holds no bytes: the shell moves them and reports what it saw.
//!
//! # Contract
//!
//! In one step report everything that can be observed ([`Relay::recv`], [`Relay::end`],
//! [`Relay::flushed`], [`Relay::progressed`]), then call [`Relay::settle`], then drain
//! [`Relay::poll_write`] for both sides, then sleep until something moves or
//! [`Relay::poll_timeout`] is reached. Of several endings in one step the order of [`Rank`] decides.
//! Once there is an [`Relay::outcome`], write what is left and let both ends go: a leg that is told
//! nothing was cut by its neighbour.

mod ending;
mod timers;

use std::time::Instant;

use crate::capability::HalfClose;
use crate::cause::{Cause, End, Origin, Reason};
use crate::id::HopName;
use crate::leg::{Arrival, Heard, Leg, Orientation, Role, Write};
use crate::limits::{CLOSE_REASON_GRACE, StreamLimits};
use crate::state::Take;

pub use self::ending::Rank;

use self::ending::{Ending, Patience, Teller};
use self::timers::Timers;

/// One of the two sides of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Towards the client.
    Downstream,
    /// Towards the target.
    Upstream,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Downstream, Self::Upstream];

    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Downstream => Self::Upstream,
            Self::Upstream => Self::Downstream,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Downstream => 0,
            Self::Upstream => 1,
        }
    }
}

/// A stream on one hop pair.
#[derive(Debug)]
pub struct Relay {
    legs: [Leg; 2],
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

impl Relay {
    /// Joins two legs on the hop called `hop`, which as an origin is `origin`.
    pub fn new(
        downstream: Leg,
        upstream: Leg,
        limits: StreamLimits,
        origin: Origin,
        hop: HopName,
        now: Instant,
    ) -> Self {
        let opening = downstream.is_opening() || upstream.is_opening();
        Self {
            legs: [downstream, upstream],
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

    /// Sets the deadline of the whole operation, as its caller asked.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.timers.operation = Some(deadline);
    }

    /// The form of FIN on one leg is known: its response headers came, or its RPC was opened.
    pub fn opened(&mut self, side: Side, half_close: HalfClose) {
        self.legs[side.index()].opened(half_close);
    }

    /// Something arrived from one side. Says what to do with its bytes.
    pub fn recv(&mut self, side: Side, arrival: Arrival, now: Instant) -> Take {
        if self.outcome.is_some() || self.patience.is_some() {
            return Take::Discard;
        }
        match self.legs[side.index()].recv(arrival) {
            Ok(Heard::Deliver) => {
                self.hand_on(side, now);
                return Take::Deliver;
            }
            Ok(Heard::Nothing | Heard::Status) => {}
            Ok(Heard::Fin | Heard::FinAndStatus) => {
                self.hand_on(side, now);
                self.legs[side.other().index()].finish();
            }
            Ok(Heard::Truncated) => {
                let end = self.truncation(side);
                self.note(Rank::Transport, Teller::Quitter(side), end);
            }
            Err(violation) => {
                let message = format!("protocol violation: {violation}");
                self.violate(side, Reason::ProtocolViolation, message);
            }
        }
        Take::Discard
    }

    /// The neighbour on `side` broke a rule that only the shell can see: a frame too large or
    /// malformed, a bad first message.
    pub fn violate(&mut self, side: Side, reason: Reason, message: impl Into<String>) {
        let end = End::new(self.neighbour(side), reason, message);
        self.note(Rank::Violation, Teller::Violator(side), end);
    }

    /// The neighbour on `side` ended the stream, or was lost. What happens to a neighbour after its
    /// last good word, when it has all that was for it, is not this stream's concern.
    pub fn end(&mut self, side: Side, rank: Rank, end: End) {
        let concluded = self.leg(side).has_concluded() && self.flushed[side.index()];
        if !concluded {
            self.note(rank, Teller::Neighbour(side), end);
        }
    }

    /// This hop ends the stream by its own decision.
    pub fn close(&mut self, end: End) {
        self.note(Rank::Own, Teller::Here, end);
    }

    /// Everything queued towards `side` was taken by it, also when there was nothing. Without effect
    /// while [`Relay::poll_write`] holds more: FIN is taken when it was written, too.
    pub fn flushed(&mut self, side: Side) {
        if !self.leg(side).has_writes() {
            self.flushed[side.index()] = true;
            self.timers.unblocked(side);
        }
    }

    /// `side` took some payload bytes.
    pub fn progressed(&mut self, side: Side, now: Instant) {
        self.timers.progressed(side, now);
    }

    /// Payload bytes wait for `side`, which takes none.
    pub fn blocked(&mut self, side: Side, now: Instant) {
        self.timers.blocked(side, now);
    }

    /// Ends the step: decides between endings, notices completion and deadlines.
    pub fn settle(&mut self, now: Instant) {
        if self.outcome.is_some() {
            return;
        }
        if self.timers.is_opening() && !self.legs.iter().any(Leg::is_opening) {
            self.timers.opened(now);
        }
        self.fill_silence(now);
        self.expire(now);
        if let Some(ending) = self.ending.take() {
            self.weigh(ending, now);
        }
        self.wait(now);
        if self.outcome.is_none() && self.patience.is_none() {
            self.finish(now);
        }
    }

    /// The next thing to write towards `side`, behind the bytes queued before.
    pub fn poll_write(&mut self, side: Side) -> Option<Write> {
        self.legs[side.index()].poll_write()
    }

    /// When [`Relay::settle`] must be called again although nothing moves.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.outcome.is_some() {
            return None;
        }
        let word = match self.patience {
            Some(Patience::Word(_, until)) => Some(until),
            Some(Patience::Delivery) | None => None,
        };
        [word, self.legacy_grace(), self.timers.next(&self.legs)]
            .into_iter()
            .flatten()
            .min()
    }

    /// How the stream ended, once it has.
    pub fn outcome(&self) -> Option<Result<(), &End>> {
        match self.outcome.as_ref()? {
            Ok(()) => Some(Ok(())),
            Err(end) => Some(Err(end)),
        }
    }

    /// Whose neighbour ended it, and so needs no word about it on a control stream.
    pub const fn ended_by(&self) -> Option<Side> {
        self.ended_by
    }

    /// The leg on one side.
    pub const fn leg(&self, side: Side) -> &Leg {
        &self.legs[side.index()]
    }

    /// The cause for states and metrics, once the stream has ended.
    pub fn cause(&self) -> Option<Cause> {
        self.outcome().map(|outcome| match outcome {
            Ok(()) => Cause::Finished,
            Err(end) => end.cause(),
        })
    }

    fn hand_on(&mut self, from: Side, now: Instant) {
        self.timers.heard(from, now);
        self.flushed[from.other().index()] = false;
    }

    fn note(&mut self, rank: Rank, teller: Teller, end: End) {
        let weaker = |old: &Ending| old.rank > rank;
        if self.outcome.is_none() && self.ending.as_deref().is_none_or(weaker) {
            self.ending = Some(Box::new(Ending { rank, teller, end }));
        }
    }

    fn fill_silence(&mut self, now: Instant) {
        for side in Side::BOTH {
            if self.timers.take_keepalive(side, &self.legs, now) {
                self.legs[side.index()].keep_alive();
            }
        }
    }

    fn expire(&mut self, now: Instant) {
        if let Some((reason, message)) = self.timers.expired(&self.legs, now) {
            let end = End::new(self.origin, reason, message);
            self.note(Rank::Deadline, Teller::Here, end);
        }
    }

    /// Decides whether an ending counts now or waits.
    fn weigh(&mut self, ending: Box<Ending>, now: Instant) {
        let patience = self.patience.as_ref();
        if patience.is_some_and(|patience| patience.outlasts(&ending)) {
            return;
        }
        self.patience = None;
        let explicable = |side| self.leg(side).may_be_explained();
        if ending.bare_loss().is_some_and(explicable) {
            self.patience = Some(Patience::Word(ending, now + CLOSE_REASON_GRACE));
        } else if self.spares_the_client(&ending) {
            self.legs[Side::Upstream.index()].cut(&ending.end);
            self.patience = Some(Patience::Delivery);
        } else {
            self.conclude(*ending);
        }
    }

    /// A client that cannot hear FIN while it sends has got, or is getting, all bytes of its target:
    /// that the target takes no more is not a failure of what it gave.
    fn spares_the_client(&self, ending: &Ending) -> bool {
        self.leg(Side::Downstream).withholds_fin()
            && ending.teller == Teller::Neighbour(Side::Upstream)
            && ending.end.origin == Origin::Target
    }

    fn wait(&mut self, now: Instant) {
        match self.patience.take() {
            Some(Patience::Word(loss, until)) if until <= now => self.conclude(*loss),
            Some(Patience::Delivery) if self.flushed[Side::Downstream.index()] => {
                self.legs[Side::Downstream.index()].complete();
                self.outcome = Some(Ok(()));
            }
            other => self.patience = other,
        }
    }

    fn conclude(&mut self, ending: Ending) {
        let Ending { teller, end, .. } = ending;
        let far = end.seen_from_afar().via(&self.hop);
        match teller {
            Teller::Here | Teller::Quitter(_) => {}
            Teller::Neighbour(side) => {
                self.ended_by = Some(side);
                self.legs[side.index()].cut(&end);
            }
            Teller::Violator(side) => self.legs[side.index()].abort(&end.clone().via(&self.hop)),
        }
        for leg in &mut self.legs {
            leg.abort(&far);
        }
        self.outcome = Some(Err(Box::new(end)));
    }

    fn finish(&mut self, now: Instant) {
        if self.is_finished() {
            for leg in &mut self.legs {
                leg.complete();
            }
            self.outcome = Some(Ok(()));
        } else if self.legacy_grace().is_some_and(|at| at <= now) {
            let message = "the client cannot half-close and has been silent since its target ended";
            let end = End::new(self.origin, Reason::HalfCloseIdle, message).via(&self.hop);
            self.legs[Side::Downstream.index()].complete();
            self.legs[Side::Upstream.index()].abort(&end);
            self.outcome = Some(Ok(()));
        }
    }

    fn is_finished(&self) -> bool {
        let both_ways = Side::BOTH.into_iter().all(|side| {
            self.leg(side).has_heard_fin()
                && self.leg(side.other()).has_said_fin()
                && self.flushed[side.other().index()]
        });
        both_ways && self.leg(Side::Upstream).has_good_status()
    }

    /// When a client that cannot hear FIN while it sends has been silent for long enough. It is not
    /// silent while it has not read what came for it, or while what it sent waits for the target.
    fn legacy_grace(&self) -> Option<Instant> {
        let is_silent = self.leg(Side::Downstream).withholds_fin()
            && self.flushed == [true; 2]
            && self.patience.is_none();
        is_silent.then(|| self.timers.legacy_grace())
    }

    fn truncation(&self, side: Side) -> End {
        let who = self.neighbour(side);
        let message = format!(
            "the {who} ended the stream before both directions had half-closed: bytes may be missing"
        );
        End::new(who, Reason::TransportLost, message)
    }

    /// Who is on that side.
    const fn neighbour(&self, side: Side) -> Origin {
        match (self.leg(side).role(), side) {
            (Role::Socket, Side::Downstream) | (Role::Acceptor(Orientation::Forward), _) => {
                Origin::Client
            }
            (Role::Socket, Side::Upstream) => Origin::Target,
            (Role::Acceptor(Orientation::Backward), _) => Origin::Supervisor,
            (Role::Opener(_), _) => Origin::Gateway,
        }
    }
}

#[cfg(test)]
mod tests;
