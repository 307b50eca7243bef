//! When a supervisor tries which gateway again.
//!
//! | the session ended with | the supervisor |
//! |---|---|
//! | OK: the sandbox was removed | does not redial |
//! | draining, loss; or none has stood yet | tries each other address once at once, then as the last row |
//! | superseded by another instance | stops and says so, so that two never duel |
//! | refused: credentials, permission, version | retries slowly, from 30 s to 5 min |
//! | a gateway that has a session of ours already, some times in a row | the same, at the next address |
//! | anything else | backs off exponentially with full jitter |

use std::time::{Duration, Instant};

use crate::cause::{End, Reason};

/// The bounds of the exponential row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The first wait, before jitter.
    pub min: Duration,
    /// The longest wait, before jitter.
    pub max: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            min: Duration::from_millis(500),
            max: Duration::from_secs(30),
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Dial the address with this index after this long.
    Dial {
        /// Which of the configured addresses.
        address: usize,
        /// How long to wait first.
        after: Duration,
    },
    /// The sandbox is gone for good: end with success.
    Stop,
    /// Another instance took over: end with failure, never redial.
    GiveWay,
}

/// How an attempt, or a session, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The gateway ended the session with OK.
    Removed,
    /// With this cause, which may be that no connection came about.
    With(End),
}

/// The longest wait, before jitter, in the first minute of an outage.
const EAGER_MAX: Duration = Duration::from_secs(4);
/// How long an outage counts as young.
const EAGER_FOR: Duration = Duration::from_secs(60);
/// How long a session must have stood for the next outage to start afresh.
const HEALTHY_AFTER: Duration = Duration::from_secs(10);
/// How long a session must have stood for its loss to be the gateway's: two gateways that both drop
/// it at once are not dialled in turn without a pause.
const STEADY_AFTER: Duration = Duration::from_secs(1);
/// How often a further home is looked for as if the next attempt could find it. A balancer needs a few
/// to lead to another gateway; where there is none, each attempt is wasted.
const FEW_DUPLICATES: u32 = 6;
/// The waits after a refusal.
const REFUSED: Bounds = Bounds {
    min: Duration::from_secs(30),
    max: Duration::from_secs(300),
};

/// The schedule. Random numbers and the time come from the shell.
#[derive(Debug)]
pub struct Redial {
    addresses: usize,
    bounds: Bounds,
    current: usize,
    outage: Option<Instant>,
    /// The last wait, before jitter, of this outage.
    waited: Duration,
    refusals: u32,
    /// Other addresses to try at once.
    untried: usize,
    /// How often in a row a gateway has said that it has a session of ours.
    duplicates: u32,
}

impl Redial {
    /// A schedule over `addresses` addresses, of which the first is dialled first.
    pub const fn new(addresses: usize, bounds: Bounds) -> Self {
        Self {
            addresses,
            bounds,
            current: 0,
            outage: None,
            waited: Duration::ZERO,
            refusals: 0,
            untried: addresses.saturating_sub(1),
            duplicates: 0,
        }
    }

    /// There are that many addresses now.
    pub const fn resize(&mut self, addresses: usize) {
        self.addresses = addresses;
    }

    /// The gateway of a session that has stood for `stood` asks for one elsewhere: another address is
    /// dialled now, and each further one is worth an attempt at once.
    pub fn moves(&mut self, stood: Duration) {
        if stood >= HEALTHY_AFTER {
            self.recover();
        }
        self.untried = if stood >= STEADY_AFTER || self.outage.is_none() {
            self.addresses.saturating_sub(2)
        } else {
            0
        };
    }

    /// An attempt led to a session.
    pub const fn found(&mut self) {
        self.duplicates = 0;
    }

    /// How often in a row an attempt has led to a gateway that has a session of ours.
    pub const fn duplicates(&self) -> u32 {
        self.duplicates
    }

    /// An attempt led to a gateway that has a session of ours and does not say so. Tells how long to
    /// wait for the next.
    pub fn duplicate(&mut self) -> Duration {
        self.duplicates = self.duplicates.max(FEW_DUPLICATES).saturating_add(1);
        REFUSED.min
    }

    /// Which address is dialled, or in use.
    pub const fn current(&self) -> usize {
        self.current
    }

    /// Decides after an attempt or a session ended. `stood` is how long the session stood, if it
    /// did; `jitter` is uniform in 0..1.
    pub fn ended(
        &mut self,
        how: &Ended,
        stood: Option<Duration>,
        jitter: f64,
        now: Instant,
    ) -> Next {
        let Ended::With(end) = how else {
            return Next::Stop;
        };
        if end.reason == Reason::Superseded {
            return Next::GiveWay;
        }
        if stood.is_some_and(|stood| stood >= HEALTHY_AFTER) {
            self.recover();
        }
        if end.reason == Reason::DuplicateSession {
            self.duplicates = self.duplicates.saturating_add(1);
        }
        if let Some(stood) = stood {
            let steady = self.outage.is_none() || stood >= STEADY_AFTER;
            let others = self.addresses.saturating_sub(1);
            self.untried = if steady && is_move(end.reason) {
                others
            } else {
                0
            };
        }
        let since = *self.outage.get_or_insert(now);
        if is_refusal(end.reason) {
            return self.slowly(end, jitter);
        }
        if self.duplicates > FEW_DUPLICATES {
            self.current = (self.current + 1) % self.addresses.max(1);
            return self.slowly(end, jitter);
        }
        self.current = (self.current + 1) % self.addresses.max(1);
        let after = if self.untried > 0 {
            self.untried -= 1;
            Duration::ZERO
        } else {
            self.wait(now.duration_since(since))
                .mul_f64(jitter.clamp(0.0, 1.0))
        };
        Next::Dial {
            address: self.current,
            after,
        }
    }

    const fn recover(&mut self) {
        self.outage = None;
        self.waited = Duration::ZERO;
        self.refusals = 0;
    }

    /// Doubles the wait, up to what is reasonable that long into an outage.
    fn wait(&mut self, outage: Duration) -> Duration {
        let eager = outage < EAGER_FOR;
        let max = if eager {
            self.bounds.max.min(EAGER_MAX)
        } else {
            self.bounds.max
        };
        self.waited = self.waited.saturating_mul(2).max(self.bounds.min).min(max);
        self.waited
    }

    /// A refusal is not a matter of milliseconds: jitter only adds to the wait.
    fn slowly(&mut self, end: &End, jitter: f64) -> Next {
        let doubled = 2u32.saturating_pow(self.refusals);
        let wait = REFUSED
            .min
            .saturating_mul(doubled)
            .min(REFUSED.max)
            .max(end.retry_after.unwrap_or_default().min(REFUSED.max));
        self.refusals = self.refusals.saturating_add(1);
        let after = wait.mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 10.0);
        Next::Dial {
            address: self.current,
            after,
        }
    }
}

/// The gateway is leaving or lost: another one may be there already.
fn is_move(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::GatewayDraining
            | Reason::TransportLost
            | Reason::HeartbeatTimeout
            | Reason::OwnerLost
            | Reason::PeerLost
    )
}

fn is_refusal(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::CredentialInvalid
            | Reason::CredentialExpired
            | Reason::CredentialRevoked
            | Reason::NotPermitted
            | Reason::VersionUnsupported
            | Reason::CapabilityRequired
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Origin;

    fn end(reason: Reason) -> Ended {
        Ended::With(End::new(Origin::Gateway, reason, ""))
    }

    fn wait(next: Next) -> Duration {
        match next {
            Next::Dial { after, .. } => after,
            Next::Stop | Next::GiveWay => panic!("{next:?}"),
        }
    }

    #[test]
    fn removal_stops_and_another_instance_is_given_way() {
        let now = Instant::now();
        let mut redial = Redial::new(1, Bounds::default());
        assert_eq!(redial.ended(&Ended::Removed, None, 0.5, now), Next::Stop);
        assert_eq!(
            redial.ended(&end(Reason::Superseded), None, 0.5, now),
            Next::GiveWay
        );
    }

    #[test]
    fn a_lost_session_tries_each_other_address_once_at_once() {
        let now = Instant::now();
        let mut redial = Redial::new(3, Bounds::default());
        let stood = Some(Duration::from_secs(60));
        let lost = end(Reason::TransportLost);
        let at_once = |address| Next::Dial {
            address,
            after: Duration::ZERO,
        };
        assert_eq!(redial.ended(&lost, stood, 1.0, now), at_once(1));
        assert_eq!(redial.ended(&lost, None, 1.0, now), at_once(2));
        let next = redial.ended(&lost, None, 1.0, now);
        assert_eq!(
            next,
            Next::Dial {
                address: 0,
                after: Duration::from_millis(500)
            }
        );
    }

    #[test]
    fn a_first_address_that_is_not_there_costs_the_second_no_wait() {
        let now = Instant::now();
        let mut redial = Redial::new(3, Bounds::default());
        let lost = end(Reason::TransportLost);
        let waits = [0, 0, 500, 1000].map(Duration::from_millis);
        assert_eq!(
            waits.map(|_| wait(redial.ended(&lost, None, 1.0, now))),
            waits
        );
    }

    #[test]
    fn two_gateways_that_drop_every_session_are_not_dialled_in_a_circle() {
        let now = Instant::now();
        let mut redial = Redial::new(2, Bounds::default());
        let draining = end(Reason::GatewayDraining);
        let at_once = Some(Duration::from_millis(1));
        assert_eq!(
            wait(redial.ended(&draining, at_once, 1.0, now)),
            Duration::ZERO
        );
        for millis in [500, 1000, 2000, 4000, 4000] {
            let next = redial.ended(&draining, at_once, 1.0, now);
            assert_eq!(wait(next), Duration::from_millis(millis));
        }
    }

    #[test]
    fn waits_stay_short_in_the_first_minute_and_grow_after_it() {
        let start = Instant::now();
        let mut redial = Redial::new(1, Bounds::default());
        let lost = end(Reason::TransportLost);
        for n in 0..20 {
            let at = start + Duration::from_secs(n);
            assert!(wait(redial.ended(&lost, None, 1.0, at)) <= EAGER_MAX);
        }
        let late = start + Duration::from_secs(61);
        let later = [8, 16, 30, 30].map(Duration::from_secs);
        let waits = later.map(|_| wait(redial.ended(&lost, None, 1.0, late)));
        assert_eq!(waits, later);
        let healthy = Some(HEALTHY_AFTER);
        assert_eq!(
            wait(redial.ended(&lost, healthy, 1.0, late)),
            Duration::from_millis(500)
        );
    }

    #[test]
    fn sec_06_a_refusal_is_retried_slowly() {
        let now = Instant::now();
        let mut redial = Redial::new(2, Bounds::default());
        let mut waits = Vec::new();
        for _ in 0..6 {
            let next = redial.ended(&end(Reason::CredentialExpired), None, 0.0, now);
            assert_eq!(redial.current(), 0);
            waits.push(wait(next).as_secs());
        }
        assert_eq!(waits, [30, 60, 120, 240, 300, 300]);
    }

    #[test]
    fn a_further_home_that_is_nowhere_is_looked_for_ever_less() {
        let now = Instant::now();
        let mut redial = Redial::new(1, Bounds::default());
        let same = end(Reason::DuplicateSession);
        for _ in 0..FEW_DUPLICATES {
            assert!(wait(redial.ended(&same, None, 0.0, now)) <= EAGER_MAX);
        }
        assert_eq!(wait(redial.ended(&same, None, 0.0, now)), REFUSED.min);
        redial.found();
        assert!(wait(redial.ended(&same, None, 0.0, now)) <= EAGER_MAX);
    }

    #[test]
    fn a_gateway_cannot_send_a_supervisor_away_for_good() {
        let now = Instant::now();
        let mut redial = Redial::new(1, Bounds::default());
        let far = End::new(Origin::Gateway, Reason::NotPermitted, "")
            .retry_after(Duration::from_secs(1_000_000));
        let next = redial.ended(&Ended::With(far), None, 0.0, now);
        assert_eq!(wait(next), REFUSED.max);
    }
}
