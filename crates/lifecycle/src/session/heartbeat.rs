//! Signs of life on a control stream.

use std::time::{Duration, Instant};

use crate::limits::MISSED_HEARTBEATS;

/// When to send a sign of life, and when the neighbour has been silent for too long.
///
/// Any message counts as life. A neighbour that did not agree on liveness is never timed out: it may
/// be an older one that sends no heartbeats.
#[derive(Debug)]
pub struct Heartbeat {
    interval: Duration,
    expected: bool,
    heard: Instant,
    sent: Instant,
}

/// What a moment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// Nothing yet.
    Rest,
    /// A heartbeat of ours is due.
    Send,
    /// The neighbour has missed three of its own.
    Dead,
}

impl Heartbeat {
    /// Starts both clocks. `expected` says whether silence of the neighbour means death.
    pub const fn new(interval: Duration, expected: bool, now: Instant) -> Self {
        Self {
            interval,
            expected,
            heard: now,
            sent: now,
        }
    }

    /// The neighbour said something.
    pub const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// The interval both ends keep.
    pub const fn interval(&self) -> Duration {
        self.interval
    }

    /// Asks what `now` asks for. [`Beat::Send`] counts the heartbeat as sent.
    pub fn poll(&mut self, now: Instant) -> Beat {
        if self.dead_at().is_some_and(|at| at <= now) {
            Beat::Dead
        } else if self.sent + self.interval <= now {
            self.sent = now;
            Beat::Send
        } else {
            Beat::Rest
        }
    }

    /// When to ask again.
    pub fn next(&self) -> Instant {
        let send = self.sent + self.interval;
        self.dead_at().map_or(send, |dead| dead.min(send))
    }

    fn dead_at(&self) -> Option<Instant> {
        self.expected
            .then(|| self.heard + self.interval * MISSED_HEARTBEATS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_secs(15);

    #[test]
    fn three_silent_intervals_are_death_and_any_message_is_life() {
        let start = Instant::now();
        let mut heart = Heartbeat::new(INTERVAL, true, start);
        assert_eq!(heart.poll(start + INTERVAL), Beat::Send);
        assert_eq!(heart.poll(start + INTERVAL * 2), Beat::Send);
        heart.heard(start + INTERVAL * 2);
        assert_eq!(heart.poll(start + INTERVAL * 4), Beat::Send);
        assert_eq!(heart.next(), start + INTERVAL * 5);
        assert_eq!(heart.poll(start + INTERVAL * 5), Beat::Dead);
    }

    #[test]
    fn ss_19_a_peer_that_never_agreed_on_liveness_is_never_timed_out() {
        let start = Instant::now();
        let mut heart = Heartbeat::new(INTERVAL, false, start);
        for n in 1..100 {
            assert_eq!(heart.poll(start + INTERVAL * n), Beat::Send);
        }
    }
}
