//! One sandbox in memory, as a value: which session counts, and for how long the name is kept.

use std::time::{Duration, Instant, SystemTime};

use tidegate_lifecycle::id::{Generation, SandboxName};

use crate::{Home, SandboxEntry};

/// What is remembered of a name.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// An operator forgot it, at that time.
    Deleted(Instant),
    /// A sandbox.
    Present(Present),
}

/// A sandbox and its session.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    declared: bool,
    home: Option<Home>,
    seen: bool,
    touched: Instant,
    created: SystemTime,
    since: SystemTime,
}

impl Present {
    /// A sandbox that was just heard of.
    pub(crate) const fn new(now: Instant, wall: SystemTime) -> Self {
        Self {
            declared: false,
            home: None,
            seen: false,
            touched: now,
            created: wall,
            since: wall,
        }
    }

    /// Keeps the name for ever.
    pub(crate) const fn declare(&mut self) {
        self.declared = true;
    }

    /// The newest session wins; returns the one before it.
    pub(crate) fn claim(&mut self, home: Home, now: Instant, wall: SystemTime) -> Option<Home> {
        self.seen = true;
        self.touch(now, wall);
        self.home.replace(home)
    }

    /// Lets a session go, if it is still the one that counts.
    pub(crate) fn release(
        &mut self,
        generation: Generation,
        now: Instant,
        wall: SystemTime,
    ) -> bool {
        let counts = self
            .home
            .as_ref()
            .is_some_and(|home| home.generation == generation);
        if counts {
            self.home = None;
            self.touch(now, wall);
        }
        counts
    }

    pub(crate) fn homes(&self) -> Vec<Home> {
        self.home.iter().cloned().collect()
    }

    pub(crate) fn entry(&self, name: &SandboxName) -> SandboxEntry {
        SandboxEntry {
            name: name.clone(),
            homes: self.homes(),
            seen: self.seen,
            created: self.created,
            since: self.since,
        }
    }

    const fn touch(&mut self, now: Instant, wall: SystemTime) {
        self.touched = now;
        self.since = wall;
    }
}

impl Record {
    /// Whether nobody needs it any more.
    pub(crate) fn is_stale(&self, retention: Duration, now: Instant) -> bool {
        let old = |at: Instant| now.saturating_duration_since(at) > retention;
        match self {
            Self::Deleted(at) => old(*at),
            Self::Present(it) => !it.declared && it.home.is_none() && old(it.touched),
        }
    }

    /// The sandbox, unless it was forgotten.
    pub(crate) const fn present(&self) -> Option<&Present> {
        match self {
            Self::Present(present) => Some(present),
            Self::Deleted(_) => None,
        }
    }

    /// The sandbox; one that was forgotten begins again.
    pub(crate) fn revive(&mut self, now: Instant, wall: SystemTime) -> &mut Present {
        if let Self::Deleted(_) = self {
            *self = Self::Present(Present::new(now, wall));
        }
        match self {
            Self::Present(present) => present,
            Self::Deleted(_) => unreachable!("it was replaced three lines above"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_lifecycle::id::{GatewayId, InstanceId, SessionId};

    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

    fn home(generation: u64) -> Home {
        Home {
            gateway: GatewayId::new("gw0"),
            session: SessionId::new(format!("s{generation}")),
            instance: InstanceId::new("i"),
            generation: Generation::new(generation),
            peer_url: None,
        }
    }

    #[test]
    fn ss_01_a_late_goodbye_never_touches_the_successor() {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let mut sandbox = Present::new(now, wall);
        assert_eq!(sandbox.claim(home(1), now, wall), None);
        assert_eq!(sandbox.claim(home(2), now, wall), Some(home(1)));
        assert!(!sandbox.release(Generation::new(1), now, wall));
        assert_eq!(sandbox.homes(), [home(2)]);
        assert!(sandbox.release(Generation::new(2), now, wall));
        assert!(sandbox.homes().is_empty());
    }

    #[test]
    fn only_names_without_session_and_declaration_grow_old() {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let later = now + WEEK + Duration::from_secs(1);
        let mut seen = Present::new(now, wall);
        seen.claim(home(1), now, wall);
        assert!(!Record::Present(seen.clone()).is_stale(WEEK, later));
        seen.release(Generation::new(1), now, wall);
        assert!(Record::Present(seen.clone()).is_stale(WEEK, later));
        assert!(!Record::Present(seen.clone()).is_stale(WEEK, now + WEEK));
        seen.declare();
        assert!(!Record::Present(seen).is_stale(WEEK, later));
        assert!(Record::Deleted(now).is_stale(WEEK, later));
    }
}
