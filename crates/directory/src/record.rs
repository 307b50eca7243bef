//! One sandbox in memory, as a value: which session counts, and for how long the name is kept.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use tidegate_lifecycle::id::{Generation, SandboxName, SessionId};
use tidegate_lifecycle::ownership::{Held, Standing, Wish, order, settle};

use crate::{Claim, Home, Incarnation, Replica, SandboxEntry};

/// What is remembered of a name.
#[derive(Clone, Debug)]
pub(crate) enum Record {
    /// An operator forgot it, at that time.
    Deleted(Instant),
    /// A sandbox.
    Present(Present),
}

/// A sandbox and its sessions.
#[derive(Clone, Debug)]
pub(crate) struct Present {
    declared: bool,
    rows: Vec<Row>,
    seen: bool,
    touched: Instant,
    created: SystemTime,
    since: SystemTime,
}

/// A recorded session.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) held: Held,
    pub(crate) replica: Arc<Replica>,
    pub(crate) since: SystemTime,
}

impl Row {
    pub(crate) fn home(&self) -> Home {
        let Held {
            gateway,
            session,
            instance,
            generation,
            standing,
            ..
        } = self.held.clone();
        Home {
            gateway,
            session,
            instance,
            generation,
            standing,
            peer_url: self.replica.peer_url.clone(),
            public_url: self.replica.public_url.clone(),
            since: self.since,
        }
    }
}

/// What a claim has changed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    pub(crate) ended: Vec<Row>,
    pub(crate) drained: Vec<Row>,
}

impl Present {
    /// A sandbox that was just heard of.
    pub(crate) const fn new(now: Instant, wall: SystemTime) -> Self {
        Self {
            declared: false,
            rows: Vec::new(),
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

    /// Records a session, and does to the others what the rule says.
    pub(crate) fn claim(
        &mut self,
        claim: &Claim,
        generation: Generation,
        replica: &Arc<Replica>,
        now: Instant,
        wall: SystemTime,
    ) -> Changed {
        let wish = Wish {
            gateway: replica.gateway.clone(),
            instance: claim.instance.clone(),
            homes: claim.homes,
            replaces: claim.replaces.clone(),
        };
        let held: Vec<Held> = self.rows.iter().map(|row| row.held.clone()).collect();
        let settled = settle(&held, &wish);
        let is_over = |row: &mut Row| settled.ended.contains(&row.held.session);
        let ended = self.rows.extract_if(.., is_over).collect();
        let mut drained = Vec::new();
        for row in &mut self.rows {
            if settled.drained.contains(&row.held.session) {
                row.held.standing = Standing::DrainOnly;
                drained.push(row.clone());
            }
        }
        self.rows.push(Row {
            held: Held {
                gateway: wish.gateway,
                session: claim.session.clone(),
                instance: wish.instance,
                generation,
                slot: settled.slot,
                standing: Standing::Live,
            },
            replica: Arc::clone(replica),
            since: wall,
        });
        self.seen = true;
        self.touch(now, wall);
        Changed { ended, drained }
    }

    /// Lets a session go, if it is recorded.
    pub(crate) fn release(&mut self, session: &SessionId, now: Instant, wall: SystemTime) -> bool {
        let before = self.rows.len();
        self.rows.retain(|row| row.held.session != *session);
        let was_there = self.rows.len() < before;
        if was_there && self.rows.is_empty() {
            self.touch(now, wall);
        }
        was_there
    }

    /// A gateway is gone: what it has recorded is a last resort. Says whether there was something.
    pub(crate) fn lapse(&mut self, incarnation: &Incarnation) -> bool {
        let mut touched = false;
        for row in &mut self.rows {
            if row.replica.incarnation == *incarnation {
                row.held.standing = Standing::Lapsed;
                touched = true;
            }
        }
        touched
    }

    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(crate) fn homes(&self) -> Vec<Home> {
        let mut homes: Vec<Home> = self.rows.iter().map(Row::home).collect();
        order(&mut homes, |home| (home.standing, home.generation));
        homes
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

    /// Whether a gateway that is there has a session of it.
    fn is_held(&self) -> bool {
        let mut standings = self.rows.iter().map(|row| row.held.standing);
        standings.any(|standing| standing != Standing::Lapsed)
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
            Self::Present(it) => !it.declared && !it.is_held() && old(it.touched),
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
    use tidegate_lifecycle::id::{GatewayId, InstanceId};

    const WEEK: Duration = Duration::from_secs(7 * 24 * 3600);

    fn claim(sandbox: &mut Present, generation: u64, now: Instant) -> Changed {
        let claim = Claim {
            sandbox: SandboxName::parse("box").unwrap(),
            session: session(generation),
            instance: InstanceId::new("i"),
            homes: 1,
            replaces: None,
        };
        let replica = Replica {
            gateway: GatewayId::new("gw0"),
            incarnation: Incarnation::new("first"),
            peer_url: None,
            public_url: None,
        };
        let generation = Generation::new(generation);
        let wall = SystemTime::now();
        sandbox.claim(&claim, generation, &Arc::new(replica), now, wall)
    }

    fn session(generation: u64) -> SessionId {
        SessionId::new(format!("s{generation}"))
    }

    #[test]
    fn ss_01_a_late_goodbye_never_touches_the_successor() {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let mut sandbox = Present::new(now, wall);
        assert!(claim(&mut sandbox, 1, now).ended.is_empty());
        let ended = claim(&mut sandbox, 2, now).ended;
        assert_eq!(ended[0].held.session, session(1));
        assert!(!sandbox.release(&session(1), now, wall));
        assert_eq!(sandbox.homes()[0].session, session(2));
        assert!(sandbox.release(&session(2), now, wall));
        assert!(sandbox.homes().is_empty());
    }

    #[test]
    fn only_names_without_session_and_declaration_grow_old() {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let later = now + WEEK + Duration::from_secs(1);
        let mut seen = Present::new(now, wall);
        claim(&mut seen, 1, now);
        assert!(!Record::Present(seen.clone()).is_stale(WEEK, later));
        let mut lapsed = seen.clone();
        lapsed.lapse(&Incarnation::new("another"));
        assert!(!Record::Present(lapsed.clone()).is_stale(WEEK, later));
        lapsed.lapse(&Incarnation::new("first"));
        assert!(Record::Present(lapsed).is_stale(WEEK, later));
        seen.release(&session(1), now, wall);
        assert!(Record::Present(seen.clone()).is_stale(WEEK, later));
        assert!(!Record::Present(seen.clone()).is_stale(WEEK, now + WEEK));
        seen.declare();
        assert!(!Record::Present(seen).is_stale(WEEK, later));
        assert!(Record::Deleted(now).is_stale(WEEK, later));
    }
}
