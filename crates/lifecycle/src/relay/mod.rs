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

mod timers;

use std::time::Instant;

use crate::capability::HalfClose;
use crate::cause::{Cause, End, Origin, Reason};
use crate::id::HopName;
use crate::leg::{Arrival, Heard, Leg, Write};
use crate::limits::{CLOSE_REASON_GRACE, StreamLimits};
use crate::state::Take;

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

/// Which ending wins when several are observed in one step: the first in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// This side's own decision: its user cancelled, an operator closed it, the process stops.
    Own,
    /// The neighbour said why: a status, a typed `RelayClose`, a reset that has one meaning only.
    Typed,
    /// The neighbour broke the protocol.
    Violation,
    /// Time ran out.
    Deadline,
    /// Something broke without a word.
    Transport,
}

/// How the two legs are told of an ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Teller {
    /// This hop decided: both legs are told.
    Here,
    /// The neighbour on that side ended it: only the other leg can be told.
    Neighbour(Side),
    /// The neighbour on that side broke the protocol: both are told, each in its own words.
    Violator(Side),
}

#[derive(Debug)]
struct Ending {
    rank: Rank,
    teller: Teller,
    end: End,
}

/// A stream on one hop pair.
#[derive(Debug)]
pub struct Relay {
    legs: [Leg; 2],
    /// Everything queued towards that side has been taken by it.
    flushed: [bool; 2],
    timers: Timers,
    ending: Option<Box<Ending>>,
    /// A bare loss that a word on the control stream may still explain, and until when.
    unexplained: Option<(Instant, Box<Ending>)>,
    outcome: Option<Result<(), Box<End>>>,
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
        Self {
            legs: [downstream, upstream],
            flushed: [true; 2],
            timers: Timers::new(limits, now),
            ending: None,
            unexplained: None,
            outcome: None,
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
        if self.outcome.is_some() || self.unexplained.is_some() {
            return Take::Discard;
        }
        match self.legs[side.index()].recv(arrival) {
            Ok(Heard::Deliver) => {
                self.timers.heard(side, now);
                self.flushed[side.other().index()] = false;
                return Take::Deliver;
            }
            Ok(Heard::Nothing | Heard::Status) => {}
            Ok(Heard::Fin | Heard::FinAndStatus) => {
                self.timers.heard(side, now);
                self.flushed[side.other().index()] = false;
                self.legs[side.other().index()].finish();
            }
            Ok(Heard::Truncated) => {
                let end = self.legs[side.index()].truncation();
                self.note(Rank::Transport, Teller::Neighbour(side), end);
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
        let origin = self.leg(side).neighbour();
        self.note(
            Rank::Violation,
            Teller::Violator(side),
            End::new(origin, reason, message),
        );
    }

    /// The neighbour on `side` ended the stream, or was lost.
    pub fn end(&mut self, side: Side, rank: Rank, end: End) {
        self.note(rank, Teller::Neighbour(side), end);
    }

    /// This hop ends the stream by its own decision.
    pub fn close(&mut self, end: End) {
        self.note(Rank::Own, Teller::Here, end);
    }

    /// Everything queued towards `side`, FIN included, was taken by it.
    pub fn flushed(&mut self, side: Side) {
        self.flushed[side.index()] = true;
        self.timers.unblocked(side);
    }

    /// `side` took some bytes.
    pub fn progressed(&mut self, side: Side, now: Instant) {
        self.timers.progressed(side, now);
    }

    /// Bytes wait for `side`, which takes none.
    pub fn blocked(&mut self, side: Side, now: Instant) {
        self.timers.blocked(side, now);
    }

    /// Ends the step: decides between endings, notices completion and deadlines.
    pub fn settle(&mut self, now: Instant) {
        if self.outcome.is_some() {
            return;
        }
        self.expire(now);
        if let Some(ending) = self.ending.take() {
            self.weigh(ending, now);
        }
        self.give_up_waiting(now);
        if self.outcome.is_none() && self.unexplained.is_none() && self.is_finished() {
            self.complete();
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
        let explained = self.unexplained.as_ref().map(|(until, _)| *until);
        [explained, self.timers.next(&self.legs)]
            .into_iter()
            .flatten()
            .min()
    }

    /// How the stream ended, once it has.
    pub fn outcome(&self) -> Option<Result<(), &End>> {
        Some(
            self.outcome
                .as_ref()?
                .as_ref()
                .copied()
                .map_err(|end| &**end),
        )
    }

    /// The leg on one side.
    pub const fn leg(&self, side: Side) -> &Leg {
        &self.legs[side.index()]
    }

    fn note(&mut self, rank: Rank, teller: Teller, end: End) {
        let weaker = |old: &Ending| old.rank > rank;
        if self.outcome.is_none() && self.ending.as_deref().is_none_or(weaker) {
            self.ending = Some(Box::new(Ending { rank, teller, end }));
        }
    }

    fn expire(&mut self, now: Instant) {
        for side in Side::BOTH {
            if self.timers.take_keepalive(side, &self.legs, now) {
                self.legs[side.index()].keep_alive();
            }
        }
        if self.timers.legacy_grace_is_over(&self.legs, now) {
            self.cut_withheld();
        } else if let Some((reason, message)) = self.timers.expired(&self.legs, now) {
            self.note(
                Rank::Deadline,
                Teller::Here,
                End::new(self.origin, reason, message),
            );
        }
    }

    /// Decides whether an ending counts now, or waits for a word that explains it. A word on the
    /// control stream, and everything else that is weightier than a loss, ends the wait.
    fn weigh(&mut self, ending: Box<Ending>, now: Instant) {
        if self.unexplained.is_some() && ending.rank == Rank::Transport {
            return;
        }
        self.unexplained = None;
        if self.deserves_patience(&ending) {
            self.unexplained = Some((now + CLOSE_REASON_GRACE, ending));
        } else {
            self.conclude(*ending);
        }
    }

    fn give_up_waiting(&mut self, now: Instant) {
        if self
            .unexplained
            .as_ref()
            .is_some_and(|(until, _)| *until <= now)
            && let Some((_, loss)) = self.unexplained.take()
        {
            self.conclude(*loss);
        }
    }

    fn deserves_patience(&self, ending: &Ending) -> bool {
        match ending.teller {
            Teller::Neighbour(side) => {
                ending.rank == Rank::Transport && self.leg(side).may_be_explained()
            }
            Teller::Here | Teller::Violator(_) => false,
        }
    }

    fn conclude(&mut self, ending: Ending) {
        let Ending { teller, end, .. } = ending;
        if self.ends_what_was_delivered(teller) {
            return self.complete_downstream(&end);
        }
        let far = end.seen_from_afar().via(&self.hop);
        match teller {
            Teller::Here => {
                for leg in &mut self.legs {
                    leg.abort(&far);
                }
            }
            Teller::Neighbour(side) => {
                self.legs[side.index()].cut(&end);
                self.legs[side.other().index()].abort(&far);
            }
            Teller::Violator(side) => {
                self.legs[side.index()].abort(&end.clone().via(&self.hop));
                self.legs[side.other().index()].abort(&far);
            }
        }
        self.outcome = Some(Err(Box::new(end)));
    }

    /// A client that cannot hear FIN while it sends has all bytes of its target: the failure of what
    /// it still sends is not the failure of what it got.
    fn ends_what_was_delivered(&self, teller: Teller) -> bool {
        self.leg(Side::Downstream).withholds_fin() && teller == Teller::Neighbour(Side::Upstream)
    }

    fn cut_withheld(&mut self) {
        let message = "the client cannot half-close and has been silent since its target ended";
        let end = End::new(self.origin, Reason::HalfCloseIdle, message);
        self.complete_downstream(&end);
    }

    fn complete_downstream(&mut self, end: &End) {
        self.legs[Side::Downstream.index()].complete();
        self.legs[Side::Upstream.index()].abort(&end.clone().via(&self.hop));
        self.outcome = Some(Ok(()));
    }

    fn is_finished(&self) -> bool {
        let both_ways = Side::BOTH.into_iter().all(|side| {
            self.leg(side).has_heard_fin()
                && self.leg(side.other()).has_said_fin()
                && self.flushed[side.other().index()]
        });
        both_ways && self.leg(Side::Upstream).has_good_status()
    }

    fn complete(&mut self) {
        for leg in &mut self.legs {
            leg.complete();
        }
        self.outcome = Some(Ok(()));
    }

    /// The cause for states and metrics, once the stream has ended.
    pub fn cause(&self) -> Option<Cause> {
        self.outcome().map(|outcome| match outcome {
            Ok(()) => Cause::Finished,
            Err(end) => end.cause(),
        })
    }
}
