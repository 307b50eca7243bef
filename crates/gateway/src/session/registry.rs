//! Which sessions this gateway holds, and which of them takes new relays.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_directory::{Watch, Watchers};
use tidegate_lifecycle::id::{InstanceId, SandboxName, SessionId};
use tidegate_lifecycle::session::GatewayState;
use tokio::sync::Notify;

use super::{Ending, Session};

/// The sessions of a gateway. One of each sandbox at most is live; others may be draining.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    table: Mutex<Table>,
    watchers: Watchers,
    /// Rung when the last one is let go.
    empty: Notify,
}

#[derive(Debug, Default)]
struct Table {
    all: HashMap<SessionId, Arc<Session>>,
    live: HashMap<SandboxName, Arc<Session>>,
    closed: bool,
}

impl Sessions {
    /// Takes a session in. Of two that would be live the one with the greater generation is, and
    /// the other ends, which learns who took over.
    pub(crate) fn enter(&self, session: &Arc<Session>) {
        let mut table = self.table();
        table.all.insert(session.id.clone(), Arc::clone(session));
        if table.closed {
            session.end(Ending::Draining);
        }
        let rival = table.live.get(&session.sandbox);
        if let Some(winner) = rival.filter(|rival| rival.generation > session.generation) {
            return session.end(Ending::Superseded(winner.instance.clone()));
        }
        let loser = table
            .live
            .insert(session.sandbox.clone(), Arc::clone(session));
        drop(table);
        self.watchers.wake(&session.sandbox);
        if let Some(loser) = loser {
            loser.end(Ending::Superseded(session.instance.clone()));
        }
    }

    /// Ends every session, and every one that comes later.
    pub(crate) fn close(&self) {
        self.table().closed = true;
        for (session, _) in self.all() {
            session.end(Ending::Draining);
        }
    }

    /// Gives a session no new relays.
    pub(crate) fn retire(&self, session: &Session) {
        let mut table = self.table();
        // A successor stays untouched.
        if table
            .live
            .get(&session.sandbox)
            .is_some_and(|live| live.id == session.id)
        {
            table.live.remove(&session.sandbox);
        }
    }

    /// Lets a session go.
    pub(crate) fn leave(&self, session: &Session) {
        self.retire(session);
        let mut table = self.table();
        let was_one = table.all.remove(&session.id).is_some();
        if was_one && table.all.is_empty() {
            self.empty.notify_one();
        }
    }

    /// Resolves when there is no session any more, or was none for a moment since it was asked last.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn emptied(&self) {
        self.empty.notified().await;
    }

    /// Whether this supervisor process has a session of the sandbox here.
    pub(crate) fn has_of(&self, sandbox: &SandboxName, instance: &InstanceId) -> bool {
        self.of(sandbox)
            .iter()
            .any(|session| session.instance == *instance)
    }

    /// The session of `sandbox` that takes new relays.
    pub(crate) fn live(&self, sandbox: &SandboxName) -> Option<Arc<Session>> {
        self.table().live.get(sandbox).cloned()
    }

    /// The session called `id`.
    pub(crate) fn get(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.table().all.get(id).cloned()
    }

    /// Whether there is a session called `id`.
    pub(crate) fn has(&self, id: &SessionId) -> bool {
        self.table().all.contains_key(id)
    }

    /// How many sessions there are.
    pub(crate) fn len(&self) -> usize {
        self.table().all.len()
    }

    /// Every session, and what it may do.
    pub(crate) fn all(&self) -> Vec<(Arc<Session>, GatewayState)> {
        let table = self.table();
        let state = |session: &Session| {
            let live = table.live.get(&session.sandbox);
            if live.is_some_and(|live| live.id == session.id) {
                GatewayState::Live
            } else {
                GatewayState::DrainOnly
            }
        };
        table
            .all
            .values()
            .map(|session| (Arc::clone(session), state(session)))
            .collect()
    }

    /// The sessions of one sandbox.
    pub(crate) fn of(&self, sandbox: &SandboxName) -> Vec<Arc<Session>> {
        let table = self.table();
        table
            .all
            .values()
            .filter(|session| session.sandbox == *sandbox)
            .cloned()
            .collect()
    }

    /// Watches for a session of `sandbox`.
    pub(crate) fn watch(&self, sandbox: &SandboxName) -> Watch {
        self.watchers.watch(sandbox)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::session;
    use super::*;

    #[test]
    fn the_loser_learns_who_took_over_whichever_came_first() {
        for order in [[0, 1], [1, 0]] {
            let both = [session("old", 1).0, session("new", 2).0];
            let sessions = Sessions::default();
            for index in order {
                sessions.enter(&both[index]);
            }
            let [old, new] = both;
            assert_eq!(
                sessions.live(&old.sandbox).map(|live| live.id.clone()),
                Some(new.id.clone())
            );
            let by = Ending::Superseded(new.instance.clone());
            assert_eq!((old.ending(), new.ending()), (Some(&by), None), "{order:?}");
        }
    }
}
