//! A tunnel seen from outside: its progress, and a way to end it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Context;
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use tidegate_lifecycle::cause::End;
use tidegate_lifecycle::relay::{Rank, Side};

/// A word from outside that ends a tunnel.
#[derive(Debug)]
pub(crate) enum Note {
    /// This hop ends it.
    Close(End),
    /// This hop ends it at that moment, if it has not ended by then.
    CloseBy(End, Instant),
    /// The neighbour on one side ended it, and said so on another stream.
    Told(Side, Rank, End),
}

impl Note {
    /// Whether nothing may follow. Being asked to end is no end: whoever insists must be heard, also
    /// before the tunnel has looked.
    const fn is_final(&self) -> bool {
        match self {
            Self::Close(_) | Self::Told(..) => true,
            Self::CloseBy(..) => false,
        }
    }
}

/// How far a tunnel is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Payload bytes taken by the upstream side.
    pub bytes_up: u64,
    /// Payload bytes taken by the downstream side.
    pub bytes_down: u64,
    /// The word for its state.
    pub state: &'static str,
    /// For how long bytes have waited for a side that takes none.
    pub stalled: Option<Duration>,
}

/// The words for the state of a tunnel that has not ended.
pub const OPEN_STATES: [&str; 4] = [
    "opening",
    "open",
    "upstream-finished",
    "downstream-finished",
];

/// The words for a tunnel's state, as [`Handle`] stores them.
const STATES: [&str; 5] = {
    let [opening, open, upstream, downstream] = OPEN_STATES;
    [opening, open, upstream, downstream, "closed"]
};

/// Refers to a tunnel. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    note: Mutex<Option<Box<Note>>>,
    waker: AtomicWaker,
    born: Instant,
    bytes: [AtomicU64; 2],
    state: AtomicU8,
    /// Milliseconds after `born` plus one since when a side has taken nothing; 0 when none waits.
    stalled: AtomicU64,
}

impl Handle {
    /// A handle for a tunnel that is made next.
    pub fn new(now: Instant) -> Self {
        Self(Arc::new(Shared {
            note: Mutex::new(None),
            waker: AtomicWaker::new(),
            born: now,
            bytes: [AtomicU64::new(0), AtomicU64::new(0)],
            state: AtomicU8::new(0),
            stalled: AtomicU64::new(0),
        }))
    }

    /// Ends the tunnel by this hop's own decision. The first word counts.
    pub fn close(&self, end: End) {
        self.leave(Note::Close(end));
    }

    /// Ends the tunnel of a command at `until`, unless its exit has come by then: it has been asked to
    /// end. A tunnel of bytes ends now. The first word counts, until another ends the tunnel at once.
    pub fn close_by(&self, end: End, until: Instant) {
        self.leave(Note::CloseBy(end, until));
    }

    /// Tells the tunnel how the neighbour on `side` ended it, or that it was lost. The first word
    /// counts.
    pub fn told(&self, side: Side, rank: Rank, end: End) {
        self.leave(Note::Told(side, rank, end));
    }

    /// How far the tunnel is.
    pub fn progress(&self, now: Instant) -> Progress {
        let shared = &*self.0;
        let stalled = match shared.stalled.load(Ordering::Relaxed) {
            0 => None,
            since => {
                let since = shared.born + Duration::from_millis(since - 1);
                Some(now.saturating_duration_since(since))
            }
        };
        Progress {
            bytes_up: shared.bytes[0].load(Ordering::Relaxed),
            bytes_down: shared.bytes[1].load(Ordering::Relaxed),
            state: STATES[usize::from(shared.state.load(Ordering::Relaxed)).min(STATES.len() - 1)],
            stalled,
        }
    }

    pub(crate) fn take_note(&self, cx: &Context<'_>) -> Option<Box<Note>> {
        self.0.waker.register(cx.waker());
        self.0
            .note
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    pub(crate) fn count(&self, side: Side, bytes: usize) {
        let cell = match side {
            Side::Upstream => &self.0.bytes[0],
            Side::Downstream => &self.0.bytes[1],
        };
        cell.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn set_state(&self, word: &'static str) {
        let index = STATES
            .iter()
            .position(|known| *known == word)
            .unwrap_or_default();
        self.0.state.store(index as u8, Ordering::Relaxed);
    }

    pub(crate) fn set_stalled(&self, stalled: bool, now: Instant) {
        let cell = &self.0.stalled;
        if !stalled {
            cell.store(0, Ordering::Relaxed);
        } else if cell.load(Ordering::Relaxed) == 0 {
            let since = now.saturating_duration_since(self.0.born).as_millis() as u64 + 1;
            cell.store(since, Ordering::Relaxed);
        }
    }

    fn leave(&self, note: Note) {
        let mut slot = self.0.note.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = slot
            .as_deref()
            .is_none_or(|waiting| !waiting.is_final() && note.is_final());
        if is_first {
            *slot = Some(Box::new(note));
        }
        drop(slot);
        self.0.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tidegate_lifecycle::cause::{Origin, Reason};

    use super::*;

    fn word(reason: Reason) -> End {
        End::new(Origin::Gateway, reason, "")
    }

    /// What a tunnel finds that looks only after all of it was said.
    fn found(say: impl FnOnce(&Handle)) -> Option<Reason> {
        let handle = Handle::new(Instant::now());
        say(&handle);
        let note = handle.take_note(&Context::from_waker(Waker::noop()))?;
        match *note {
            Note::Close(end) | Note::Told(_, _, end) => Some(end.reason),
            Note::CloseBy(..) => None,
        }
    }

    #[test]
    fn the_first_word_counts_and_being_asked_is_none() {
        let closed = || word(Reason::OperatorClosed);
        let lost = || word(Reason::SupervisorLost);
        let asks = |handle: &Handle| handle.close_by(closed(), Instant::now());
        let tells = |handle: &Handle| handle.told(Side::Upstream, Rank::Typed, lost());
        assert_eq!(found(asks), None);
        let insists = found(|handle| {
            asks(handle);
            handle.close(closed());
        });
        assert_eq!(insists, Some(Reason::OperatorClosed));
        let loses = found(|handle| {
            asks(handle);
            tells(handle);
        });
        assert_eq!(loses, Some(Reason::SupervisorLost));
        let late = found(|handle| {
            tells(handle);
            asks(handle);
            handle.close(closed());
        });
        assert_eq!(late, Some(Reason::SupervisorLost));
    }
}
