//! What a connection has taken for writing, of all its streams together.
//!
//! Many busy streams share one socket. If each of them handed over as much as its window allows, the
//! bytes of all would lie in memory long enough to leave the processor's caches before they are
//! written. So a connection takes little more than the socket can take next, and streams wait their
//! turn in the order they came. What was handed over is within its stream's window and always leaves
//! at the socket's pace, so that a stream that stalls holds none of it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::task::AtomicWaker;

/// What a connection takes before streams wait.
const LIMIT: usize = 512 * 1024;
/// What one stream hands over in its turn.
const TURN: usize = crate::settings::SEND_BUDGET;
/// Less than this is not counted: a frame without payload, or with a byte of it, may wait for its
/// stream's credit, and bytes that do not leave would take room from all others for as long.
const COUNTED: usize = 64;

/// The bytes that one connection has taken and not written, and who waits for room.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    held: AtomicUsize,
    waiters: AtomicUsize,
    waiting: Mutex<VecDeque<Arc<Turn>>>,
}

/// A stream's place among those that wait.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    waker: AtomicWaker,
    queued: AtomicBool,
}

impl Outbox {
    /// Takes `bytes`, and says how many of them are to leave again.
    pub(crate) fn enter(&self, bytes: usize) -> usize {
        let counted = if bytes < COUNTED { 0 } else { bytes };
        self.held.fetch_add(counted, Ordering::SeqCst);
        counted
    }

    /// `bytes` were written, or thrown away: calls those whose turn it is.
    pub(crate) fn leave(&self, bytes: usize) {
        let held = self.held.fetch_sub(bytes, Ordering::SeqCst) - bytes;
        // Whoever counts itself among the waiters looks at what is held afterwards: one of the two
        // sees the other, which is what the ordering is for.
        if held < LIMIT && self.waiters.load(Ordering::SeqCst) > 0 {
            self.call(held);
        }
    }

    /// Ready while there is room.
    pub(crate) fn poll_room(&self, turn: &Arc<Turn>, cx: &Context<'_>) -> Poll<()> {
        if self.has_room() {
            return Poll::Ready(());
        }
        turn.waker.register(cx.waker());
        if !turn.queued.swap(true, Ordering::AcqRel) {
            self.waiting().push_back(Arc::clone(turn));
            self.waiters.fetch_add(1, Ordering::SeqCst);
        }
        // Room that came before the place was taken calls nobody.
        if self.has_room() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// Whether a stream need not wait.
    pub(crate) fn has_room(&self) -> bool {
        self.held.load(Ordering::SeqCst) < LIMIT
    }

    /// Calls as many as there is room for. One that does not come leaves its room to those behind
    /// it when more is written; when nothing is left to write, all are called.
    fn call(&self, held: usize) {
        let mut turns = if held == 0 {
            usize::MAX
        } else {
            (LIMIT - held).div_ceil(TURN)
        };
        let mut waiting = self.waiting();
        while turns > 0
            && let Some(turn) = waiting.pop_front()
        {
            self.waiters.fetch_sub(1, Ordering::SeqCst);
            turns -= usize::from(turn.call());
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<Turn>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Gives the turn up: the stream is gone.
    pub(crate) fn give_up(&self) {
        drop(self.waker.take());
    }

    /// Calls the stream, and says whether there was one.
    fn call(&self) -> bool {
        self.queued.store(false, Ordering::Release);
        let waker = self.waker.take();
        waker.map(Waker::wake).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Wake;

    #[derive(Default)]
    struct Called(AtomicBool);

    impl Wake for Called {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn wait(outbox: &Outbox) -> (Arc<Turn>, Arc<Called>) {
        let (turn, called) = (Arc::<Turn>::default(), Arc::<Called>::default());
        let waker = Waker::from(Arc::clone(&called));
        let room = outbox.poll_room(&turn, &Context::from_waker(&waker));
        assert!(room.is_pending());
        (turn, called)
    }

    #[test]
    fn streams_are_called_in_turn_as_the_socket_writes() {
        let outbox = Outbox::default();
        outbox.enter(LIMIT + TURN);
        let waiting = [wait(&outbox), wait(&outbox), wait(&outbox)];
        let called = |index: usize| waiting[index].1.0.load(Ordering::SeqCst);
        outbox.leave(TURN);
        assert!(!called(0), "there is no room yet");
        outbox.leave(TURN);
        assert!(called(0) && !called(1));
        outbox.leave(LIMIT - TURN);
        assert!(
            called(1) && called(2),
            "nothing is left to write: all are called"
        );
    }

    #[test]
    fn a_stream_waits_in_one_place_however_often_it_asks() {
        let outbox = Outbox::default();
        outbox.enter(LIMIT);
        let (turn, _) = wait(&outbox);
        let cx = Context::from_waker(Waker::noop());
        assert!(outbox.poll_room(&turn, &cx).is_pending());
        assert_eq!(outbox.waiting().len(), 1);
        outbox.leave(LIMIT);
        assert!(outbox.poll_room(&turn, &cx).is_ready());
        assert_eq!(outbox.waiting().len(), 0);
    }

    #[test]
    fn what_waits_for_credit_of_its_own_keeps_nobody_waiting() {
        let outbox = Outbox::default();
        outbox.enter(LIMIT);
        let stuck = outbox.enter(COUNTED - 1);
        let waiting = [(); 5].map(|()| wait(&outbox));
        outbox.leave(LIMIT);
        assert!(waiting.iter().all(|(_, it)| it.0.load(Ordering::SeqCst)));
        outbox.leave(stuck);
    }

    #[test]
    fn a_stream_that_is_gone_takes_no_turn() {
        let outbox = Outbox::default();
        outbox.enter(LIMIT);
        let (gone, _) = wait(&outbox);
        let (_turn, called) = wait(&outbox);
        gone.give_up();
        outbox.leave(TURN);
        assert!(called.0.load(Ordering::SeqCst));
    }
}
