//! Calls that have not said their first message yet. They hold a place too, or anyone could open
//! calls without end and say nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tidegate_lifecycle::Origin;

/// How many calls of each kind may be silent at once.
#[derive(Debug)]
pub(crate) struct Waiting {
    limit: usize,
    forwards: Arc<AtomicUsize>,
    execs: Arc<AtomicUsize>,
    relays: Arc<AtomicUsize>,
    sessions: Arc<AtomicUsize>,
    peers: Arc<AtomicUsize>,
}

/// A kind of call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// ForwardTcp.
    Forward,
    /// ExecSandbox, ExecSandboxInteractive.
    Exec,
    /// RelayStream.
    Relay,
    /// ConnectSupervisor.
    Session,
    /// PeerRelay.
    Peer,
}

impl Call {
    /// Who makes it.
    pub(crate) const fn caller(self) -> Origin {
        match self {
            Self::Forward | Self::Exec => Origin::Client,
            Self::Relay | Self::Session => Origin::Supervisor,
            Self::Peer => Origin::Peer,
        }
    }
}

impl Waiting {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            forwards: Arc::default(),
            execs: Arc::default(),
            relays: Arc::default(),
            sessions: Arc::default(),
            peers: Arc::default(),
        }
    }

    /// Takes a place, which is given back on drop; none when there are none.
    pub(crate) fn enter(&self, call: Call) -> Option<WaitingGuard> {
        let count = match call {
            Call::Forward => &self.forwards,
            Call::Exec => &self.execs,
            Call::Relay => &self.relays,
            Call::Session => &self.sessions,
            Call::Peer => &self.peers,
        };
        let guard = WaitingGuard(Arc::clone(count));
        (count.fetch_add(1, Ordering::Relaxed) < self.limit).then_some(guard)
    }
}

/// A place.
#[derive(Debug)]
pub(crate) struct WaitingGuard(Arc<AtomicUsize>);

impl Drop for WaitingGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_by_kind_and_given_back() {
        let waiting = Waiting::new(1);
        let place = waiting.enter(Call::Forward);
        assert!(place.is_some() && waiting.enter(Call::Forward).is_none());
        assert!(waiting.enter(Call::Relay).is_some());
        drop(place);
        assert!(waiting.enter(Call::Forward).is_some());
    }
}
