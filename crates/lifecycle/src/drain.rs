//! How a gateway leaves without breaking anything.
//!
//! ```text
//! Accepting ─asked to leave─▶ Announcing ─announce time─▶ Draining ─nothing left, deadline─▶ Drained
//!     └──────────────────────────── told to end at once ─────────────────────────────────────▲
//! ```
//!
//! | | connections | streams | sessions |
//! |---|---|---|---|
//! | Accepting | taken | served | taken |
//! | Announcing: it is not ready any more, which balancers notice | taken | served | refused; those that are here are asked to move |
//! | Draining: it does not listen, and says GOAWAY | none come | served, where a connection is open | those that cannot be asked end when they are empty |
//! | Drained | – | ended with GATEWAY_DRAINING | ended with it |
//!
//! The deadline counts from the moment that it was asked to leave. A session that has not moved in some
//! seconds ends when it is empty, and does not keep an idle gateway: it may be that there is no place to
//! go, or that its supervisor does not understand what it was asked.

use std::time::{Duration, Instant};

/// How long sessions may take to move away from a gateway that carries no stream.
const PATIENCE: Duration = Duration::from_secs(3);
/// Between two sessions that are asked to move, on average: others have to take them in.
const PACE: Duration = Duration::from_millis(5);

/// How far the gateway has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainState {
    /// It serves.
    Accepting,
    /// It says that it leaves, and serves.
    Announcing {
        /// Until then.
        until: Instant,
        /// When everything has to be over.
        deadline: Instant,
    },
    /// It takes no connection, and lets finish what is here.
    Draining {
        /// When everything has to be over.
        deadline: Instant,
        /// Until when sessions may move; none when that is over.
        patience: Option<Instant>,
    },
    /// What is still here ends now.
    Drained,
}

/// What the shell has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Say that it is not ready, refuse sessions, and ask those that are here to move.
    Announce,
    /// Close listeners, say GOAWAY, and end sessions that cannot be asked when they are empty.
    Close,
    /// Sessions have had time to move: those that are still here end when they are empty.
    Dismiss,
    /// End what is left.
    Abort,
}

/// Who wants to come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Newcomer {
    /// A connection.
    Connection,
    /// A stream on a connection that is open.
    Stream,
    /// A supervisor's session.
    Session,
}

/// What a gateway still has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Streams of clients.
    pub streams: usize,
    /// Sessions.
    pub sessions: usize,
}

/// A gateway's way out. Each step is said once at most, in order; [`Step::Abort`] is the last.
#[derive(Debug)]
pub struct Drain {
    announce: Duration,
    deadline: Duration,
    patience: Duration,
    state: DrainState,
}

impl Drain {
    /// A gateway that serves, and when asked to leave will announce it for `announce` and be gone
    /// after `deadline` at the latest. `scale` divides what is not configured.
    pub fn new(announce: Duration, deadline: Duration, scale: f64) -> Self {
        Self {
            announce: announce.min(deadline),
            deadline,
            patience: PATIENCE.div_f64(scale),
            state: DrainState::Accepting,
        }
    }

    /// How far it has come.
    pub const fn state(&self) -> DrainState {
        self.state
    }

    /// Whether a newcomer is let in.
    pub const fn admits(&self, who: Newcomer) -> bool {
        match (self.state, who) {
            (DrainState::Accepting, _)
            | (DrainState::Announcing { .. }, Newcomer::Connection | Newcomer::Stream)
            | (DrainState::Draining { .. }, Newcomer::Stream) => true,
            (DrainState::Announcing { .. }, Newcomer::Session)
            | (DrainState::Draining { .. }, Newcomer::Connection | Newcomer::Session)
            | (DrainState::Drained, _) => false,
        }
    }

    /// It was asked to leave. Asked again, it goes on as it does.
    pub fn begin(&mut self, now: Instant) -> Option<Step> {
        match self.state {
            DrainState::Accepting => {
                self.state = DrainState::Announcing {
                    until: now + self.announce,
                    deadline: now + self.deadline,
                };
                Some(Step::Announce)
            }
            DrainState::Announcing { .. } | DrainState::Draining { .. } | DrainState::Drained => {
                None
            }
        }
    }

    /// It was told to end at once.
    pub const fn insist(&mut self) -> Option<Step> {
        match self.state {
            DrainState::Accepting | DrainState::Announcing { .. } | DrainState::Draining { .. } => {
                self.state = DrainState::Drained;
                Some(Step::Abort)
            }
            DrainState::Drained => None,
        }
    }

    /// Decides by the time and by what is left. To be called whenever less is left, and when the time
    /// has come that [`Drain::poll_timeout`] named; again and again, until it has nothing to say.
    pub fn look(&mut self, left: Left, now: Instant) -> Option<Step> {
        match self.state {
            DrainState::Announcing { until, deadline } if until <= now => {
                let patience = Some((now + self.patience).min(deadline));
                self.state = DrainState::Draining { deadline, patience };
                Some(Step::Close)
            }
            DrainState::Draining { deadline, patience } => {
                let empty = left.streams == 0 && (left.sessions == 0 || patience.is_none());
                if empty || deadline <= now {
                    self.state = DrainState::Drained;
                    return Some(Step::Abort);
                }
                if patience.is_none_or(|until| now < until) {
                    return None;
                }
                self.state = DrainState::Draining {
                    deadline,
                    patience: None,
                };
                Some(Step::Dismiss)
            }
            DrainState::Accepting | DrainState::Announcing { .. } | DrainState::Drained => None,
        }
    }

    /// When to look again, although nothing has changed before.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            DrainState::Accepting | DrainState::Drained => None,
            DrainState::Announcing { until, .. } => Some(until),
            DrainState::Draining { deadline, patience } => Some(patience.unwrap_or(deadline)),
        }
    }

    /// How much time is left for what is open.
    pub fn remaining(&self, now: Instant) -> Duration {
        match self.state {
            DrainState::Accepting => self.deadline,
            DrainState::Announcing { deadline, .. } | DrainState::Draining { deadline, .. } => {
                deadline.saturating_duration_since(now)
            }
            DrainState::Drained => Duration::ZERO,
        }
    }

    /// How long to wait before the next of `sessions` sessions is asked to move, so that all have been
    /// asked in half of the time that there is; `jitter` is uniform in 0..1.
    pub fn pause(&self, sessions: usize, jitter: f64) -> Duration {
        let sessions = u32::try_from(sessions.max(1)).unwrap_or(u32::MAX);
        let each = (self.deadline / 2 / sessions).min(PACE);
        each.mul_f64(2.0 * jitter.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ANNOUNCE: Duration = Duration::from_secs(3);
    const DEADLINE: Duration = Duration::from_secs(300);
    const SECOND: Duration = Duration::from_secs(1);

    fn drain() -> Drain {
        Drain::new(ANNOUNCE, DEADLINE, 1.0)
    }

    const fn left(streams: usize, sessions: usize) -> Left {
        Left { streams, sessions }
    }

    #[test]
    fn every_state_answers_everybody() {
        let now = Instant::now();
        let deadline = now + DEADLINE;
        let states = [
            ("Accepting", DrainState::Accepting),
            (
                "Announcing",
                DrainState::Announcing {
                    until: now + ANNOUNCE,
                    deadline,
                },
            ),
            (
                "Draining",
                DrainState::Draining {
                    deadline,
                    patience: Some(now + PATIENCE),
                },
            ),
            ("Drained", DrainState::Drained),
        ];
        let at = |state| Drain { state, ..drain() };
        let mut table = String::new();
        for (name, state) in states {
            for who in [Newcomer::Connection, Newcomer::Stream, Newcomer::Session] {
                let admits = at(state).admits(who);
                table.push_str(&format!("{name} + {who:?} -> admits {admits}\n"));
            }
            table.push_str(&format!("{name} + begin -> {:?}\n", at(state).begin(now)));
            table.push_str(&format!("{name} + insist -> {:?}\n", at(state).insist()));
            for (what, left) in [
                ("busy", left(1, 1)),
                ("idle", left(0, 1)),
                ("empty", left(0, 0)),
            ] {
                for (when, now) in [
                    ("at once", now),
                    ("later", now + 10 * SECOND),
                    ("late", deadline),
                ] {
                    let step = at(state).look(left, now);
                    table.push_str(&format!("{name} + {what} {when} -> {step:?}\n"));
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn ha_10_a_gateway_with_nothing_to_do_is_gone_when_it_has_announced_it() {
        let now = Instant::now();
        let mut drain = drain();
        assert_eq!(drain.begin(now), Some(Step::Announce));
        assert_eq!(drain.look(left(0, 0), now + SECOND), None);
        let closed = now + ANNOUNCE;
        assert_eq!(drain.poll_timeout(), Some(closed));
        assert_eq!(drain.look(left(0, 0), closed), Some(Step::Close));
        assert_eq!(drain.look(left(0, 0), closed), Some(Step::Abort));
        assert_eq!(drain.poll_timeout(), None);
    }

    #[test]
    fn a_session_that_finds_no_other_gateway_keeps_none_that_is_idle() {
        let now = Instant::now();
        let mut drain = drain();
        drain.begin(now);
        let closed = now + ANNOUNCE;
        drain.look(left(0, 1), closed);
        assert_eq!(drain.look(left(0, 1), closed + SECOND), None);
        let out_of_patience = closed + PATIENCE;
        assert_eq!(drain.poll_timeout(), Some(out_of_patience));
        let dismissed = drain.look(left(1, 1), out_of_patience);
        assert_eq!(dismissed, Some(Step::Dismiss));
        let kept = drain.look(left(1, 1), out_of_patience);
        assert_eq!(kept, None, "a stream does");
        assert_eq!(drain.poll_timeout(), Some(now + DEADLINE));
        assert_eq!(drain.look(left(0, 1), out_of_patience), Some(Step::Abort));
    }

    #[test]
    fn without_time_everything_is_over_at_once() {
        let now = Instant::now();
        let mut drain = Drain::new(ANNOUNCE, Duration::ZERO, 1.0);
        drain.begin(now);
        assert_eq!(drain.look(left(9, 9), now), Some(Step::Close));
        assert_eq!(drain.look(left(9, 9), now), Some(Step::Abort));
    }

    #[test]
    fn sessions_are_asked_at_a_pace_that_leaves_time_to_move() {
        let drain = drain();
        assert!(drain.pause(20_000, 1.0) * 20_000 <= DEADLINE);
        assert_eq!(drain.pause(1, 0.5), PACE);
        assert_eq!(drain.pause(0, 0.0), Duration::ZERO);
        let hasty = Drain::new(ANNOUNCE, SECOND, 1.0);
        assert!(hasty.pause(20_000, 1.0) * 20_000 <= SECOND);
    }

    proptest! {
        /// Whatever happens when: the steps come in order and once, and the last of them by the
        /// deadline.
        #[test]
        fn it_always_ends(
            times in (0u64..5_000, 0u64..20_000),
            news in prop::collection::vec((0usize..3, 0usize..3, 1u64..4_000), 0..40),
        ) {
            let (announce, deadline) = (Duration::from_millis(times.0), Duration::from_millis(times.1));
            let mut drain = Drain::new(announce, deadline, 1.0);
            let begin = Instant::now();
            let mut steps = vec![drain.begin(begin)];
            let mut now = begin;
            let mut news = news.into_iter();
            let mut have = left(2, 2);
            while let Some(due) = drain.poll_timeout() {
                prop_assert!(due <= begin + deadline);
                match news.next() {
                    Some((streams, sessions, millis)) if now + Duration::from_millis(millis) < due => {
                        have = left(streams, sessions);
                        now += Duration::from_millis(millis);
                    }
                    Some(_) | None => now = due,
                }
                while let Some(step) = drain.look(have, now) {
                    steps.push(Some(step));
                }
            }
            let last = steps.len() - 1;
            let between = &steps[2..last];
            prop_assert!(matches!(between, [] | [Some(Step::Dismiss)]), "{:?}", steps);
            prop_assert_eq!(&steps[..2], [Some(Step::Announce), Some(Step::Close)]);
            prop_assert_eq!(steps[last], Some(Step::Abort));
            prop_assert!(now <= begin + deadline);
        }
    }
}
