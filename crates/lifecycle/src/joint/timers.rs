//! The deadlines of a stream. Silence is valid for ever unless a limit says otherwise.

use std::time::{Duration, Instant};

use super::{Party, Side};
use crate::cause::Reason;
use crate::limits::StreamLimits;

#[derive(Debug)]
pub(crate) struct Timers {
    limits: StreamLimits,
    /// The path is still being opened, which has a limit of its own: no silence counts yet.
    opening: bool,
    pub(crate) operation: Option<Instant>,
    /// The last byte, or FIN, from or into either side.
    moved: Instant,
    /// The last frame or byte towards that side.
    spoke: [Instant; 2],
    /// Since when bytes have waited for that side without progress.
    blocked: [Option<Instant>; 2],
}

impl Timers {
    pub(crate) const fn new(limits: StreamLimits, opening: bool, now: Instant) -> Self {
        Self {
            limits,
            opening,
            operation: None,
            moved: now,
            spoke: [now; 2],
            blocked: [None; 2],
        }
    }

    pub(crate) const fn is_opening(&self) -> bool {
        self.opening
    }

    /// The path is open: every silence begins now.
    pub(crate) fn opened(&mut self, now: Instant) {
        self.opening = false;
        self.moved = now;
        for since in self.blocked.iter_mut().flatten() {
            *since = now;
        }
    }

    /// Bytes, or FIN, came from `side`; they go to the other.
    pub(crate) fn heard(&mut self, side: Side, now: Instant) {
        self.moved = now;
        self.spoke[side.other().index()] = now;
    }

    pub(crate) fn progressed(&mut self, side: Side, now: Instant) {
        self.moved = now;
        self.spoke[side.index()] = now;
        if let Some(since) = &mut self.blocked[side.index()] {
            *since = now;
        }
    }

    pub(crate) fn blocked(&mut self, side: Side, now: Instant) {
        self.blocked[side.index()].get_or_insert(now);
    }

    pub(crate) fn unblocked(&mut self, side: Side) {
        self.blocked[side.index()] = None;
    }

    /// The first deadline that has passed, with a sentence about it.
    pub(crate) fn expired<L: Party>(
        &self,
        legs: &[L; 2],
        now: Instant,
    ) -> Option<(Reason, String)> {
        let candidates = [
            (Reason::OperationTimeout, self.operation),
            (Reason::WriteStalled, self.write_stall()),
            (Reason::HalfCloseIdle, self.half_close_idle(legs)),
            (Reason::IdleTimeout, self.idle()),
        ];
        let (reason, _) = candidates
            .into_iter()
            .find(|(_, at)| at.is_some_and(|at| at <= now))?;
        Some((reason, self.sentence(reason)))
    }

    /// The next moment at which something expires or a keepalive is due.
    pub(crate) fn next<L: Party>(&self, legs: &[L; 2]) -> Option<Instant> {
        let fixed = [
            self.operation,
            self.write_stall(),
            self.half_close_idle(legs),
            self.idle(),
        ];
        let keepalives = Side::BOTH.map(|side| self.keepalive(side, legs));
        fixed.into_iter().chain(keepalives).flatten().min()
    }

    /// When a silence that began with the last movement is long enough for a legacy client.
    pub(crate) fn legacy_grace(&self) -> Instant {
        self.moved + self.limits.legacy_half_close_grace
    }

    /// Whether a keepalive towards `side` is due; if so the next one is counted from `now`.
    pub(crate) fn take_keepalive<L: Party>(
        &mut self,
        side: Side,
        legs: &[L; 2],
        now: Instant,
    ) -> bool {
        let due = self.keepalive(side, legs).is_some_and(|at| at <= now);
        if due {
            self.spoke[side.index()] = now;
        }
        due
    }

    fn idle(&self) -> Option<Instant> {
        let limit = self.limits.idle.filter(|_| !self.opening)?;
        Some(self.moved + limit)
    }

    fn half_close_idle<L: Party>(&self, legs: &[L; 2]) -> Option<Instant> {
        let half_closed = legs[0].is_half_closed() != legs[1].is_half_closed();
        let counts = half_closed && !self.opening;
        let limit = self.limits.half_close_idle.filter(|_| counts)?;
        Some(self.moved + limit)
    }

    fn write_stall(&self) -> Option<Instant> {
        let limit = self.limits.write_stall.filter(|_| !self.opening)?;
        Some(self.blocked.iter().flatten().min().copied()? + limit)
    }

    fn keepalive<L: Party>(&self, side: Side, legs: &[L; 2]) -> Option<Instant> {
        let interval = self
            .limits
            .keepalive
            .filter(|_| legs[side.index()].takes_keepalive())?;
        Some(self.spoke[side.index()] + interval)
    }

    fn sentence(&self, reason: Reason) -> String {
        let limited = |what: &str, limit: Option<Duration>| {
            format!(
                "{what} for {:?}, which is the configured limit",
                limit.unwrap_or_default()
            )
        };
        if reason == Reason::WriteStalled {
            limited("a reader took nothing", self.limits.write_stall)
        } else if reason == Reason::HalfCloseIdle {
            let what = "one direction had ended and nothing moved in the other";
            limited(what, self.limits.half_close_idle)
        } else if reason == Reason::IdleTimeout {
            limited("nothing moved in either direction", self.limits.idle)
        } else {
            "the deadline of the whole operation has passed".to_owned()
        }
    }
}
