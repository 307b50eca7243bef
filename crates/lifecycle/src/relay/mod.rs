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

use std::time::Instant;

use crate::capability::HalfClose;
use crate::cause::{Cause, End, Origin, Reason};
use crate::id::HopName;
use crate::joint::{Ending, Joint, Teller};
use crate::leg::{Arrival, Heard, Leg, Write};
use crate::limits::StreamLimits;
use crate::state::Take;

pub use crate::joint::{Rank, Side};

/// A stream on one hop pair.
#[derive(Debug)]
pub struct Relay {
    joint: Joint<Leg>,
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
        let joint = Joint::new([downstream, upstream], limits, origin, hop, now);
        Self { joint }
    }

    /// Sets the deadline of the whole operation, as its caller asked.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.joint.set_deadline(deadline);
    }

    /// The path leads through another gateway: upstream is a call of ours to it, which it has answered.
    pub fn leads_to_owner(&mut self) {
        self.joint.leg_mut(Side::Upstream).leads_to_owner();
    }

    /// The form of FIN on one leg is known: its response headers came, or its RPC was opened.
    pub fn opened(&mut self, side: Side, half_close: HalfClose) {
        self.joint.leg_mut(side).opened(half_close);
        if side == Side::Upstream {
            self.joint.greet();
        }
    }

    /// Something arrived from one side. Says what to do with its bytes.
    pub fn recv(&mut self, side: Side, arrival: Arrival, now: Instant) -> Take {
        if !self.joint.is_listening() {
            return Take::Discard;
        }
        match self.joint.leg_mut(side).recv(arrival) {
            Ok(Heard::Deliver) => {
                self.joint.hand_on(side, now);
                return Take::Deliver;
            }
            Ok(Heard::Nothing | Heard::Status) => {}
            Ok(Heard::Fin | Heard::FinAndStatus) => {
                self.joint.hand_on(side, now);
                self.joint.leg_mut(side.other()).finish();
            }
            Ok(Heard::Truncated) => {
                let missing = "both directions had half-closed: bytes may be missing";
                self.joint.truncate(side, missing);
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
        self.joint.violate(side, reason, message);
    }

    /// The neighbour on `side` ended the stream, or was lost. What happens to a neighbour after its
    /// last good word, when it has all that was for it, is not this stream's concern.
    pub fn end(&mut self, side: Side, rank: Rank, end: End) {
        self.joint.end(side, rank, end);
    }

    /// This hop ends the stream by its own decision.
    pub fn close(&mut self, end: End) {
        self.joint.close(end);
    }

    /// Everything queued towards `side` was taken by it, also when there was nothing. Without effect
    /// while [`Relay::poll_write`] holds more: FIN is taken when it was written, too.
    pub fn flushed(&mut self, side: Side) {
        self.joint.flushed(side);
    }

    /// `side` took some payload bytes.
    pub fn progressed(&mut self, side: Side, now: Instant) {
        self.joint.progressed(side, now);
    }

    /// Payload bytes wait for `side`, which takes none.
    pub fn blocked(&mut self, side: Side, now: Instant) {
        self.joint.blocked(side, now);
    }

    /// Ends the step: decides between endings, notices completion and deadlines.
    pub fn settle(&mut self, now: Instant) {
        if self.joint.outcome().is_some() {
            return;
        }
        self.joint.tick(now);
        if let Some(ending) = self.joint.decide(now) {
            if self.spares_the_client(&ending) {
                self.joint.spare(&ending.end);
            } else {
                self.joint.conclude(*ending);
            }
        }
        if self.joint.has_spared() || (self.joint.is_listening() && self.is_finished()) {
            self.joint.finish();
        } else if self.legacy_grace().is_some_and(|at| at <= now) {
            self.give_up();
        }
    }

    /// The next thing to write towards `side`, behind the bytes queued before.
    pub fn poll_write(&mut self, side: Side) -> Option<Write> {
        self.joint.poll_write(side)
    }

    /// When [`Relay::settle`] must be called again although nothing moves.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let known = self.joint.poll_timeout();
        [known, self.legacy_grace()].into_iter().flatten().min()
    }

    /// How the stream ended, once it has.
    pub fn outcome(&self) -> Option<Result<(), &End>> {
        self.joint.outcome()
    }

    /// Whose neighbour ended it, and so needs no word about it on a control stream.
    pub const fn ended_by(&self) -> Option<Side> {
        self.joint.ended_by()
    }

    /// The leg on one side.
    pub const fn leg(&self, side: Side) -> &Leg {
        self.joint.leg(side)
    }

    /// The cause for states and metrics, once the stream has ended.
    pub fn cause(&self) -> Option<Cause> {
        self.joint.cause()
    }

    /// A client that cannot hear FIN while it sends has got, or is getting, all bytes of its target:
    /// that the target takes no more is not a failure of what it gave.
    fn spares_the_client(&self, ending: &Ending) -> bool {
        self.leg(Side::Downstream).withholds_fin()
            && ending.teller == Teller::Neighbour(Side::Upstream)
            && ending.end.origin == Origin::Target
    }

    /// A client that cannot half-close has nothing more to say, as far as can be told.
    fn give_up(&mut self) {
        let message = "the client cannot half-close and has been silent since its target ended";
        let end = End::new(self.joint.origin(), Reason::HalfCloseIdle, message);
        let end = self.joint.passed_on(&end);
        self.joint.leg_mut(Side::Upstream).abort(&end);
        self.joint.finish();
    }

    fn is_finished(&self) -> bool {
        let both_ways = Side::BOTH.into_iter().all(|side| {
            self.leg(side).has_heard_fin()
                && self.leg(side.other()).has_said_fin()
                && self.joint.is_flushed(side.other())
        });
        both_ways && self.leg(Side::Upstream).has_good_status()
    }

    /// When a client that cannot hear FIN while it sends has been silent for long enough. It is not
    /// silent while it has not read what came for it, or while what it sent waits for the target.
    fn legacy_grace(&self) -> Option<Instant> {
        let is_silent = self.leg(Side::Downstream).withholds_fin()
            && Side::BOTH
                .into_iter()
                .all(|side| self.joint.is_flushed(side))
            && self.joint.is_listening();
        is_silent.then(|| self.joint.legacy_grace())
    }
}

#[cfg(test)]
mod tests;
