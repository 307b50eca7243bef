//! What is handed to `h2` for writing, and the count of what it has not written yet.

use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use futures_util::task::AtomicWaker;

use crate::life::Life;

/// A rope of [`Bytes`] that leaves as one DATA frame, through one `writev`.
///
/// Handed to [`SendHalf::send`](crate::SendHalf::send). From its making to its drop, whether it
/// was written or discarded, its length stands in the [`Ledger`]. Printed, it tells no byte.
pub struct Payload {
    segments: VecDeque<Bytes>,
    remaining: usize,
    entry: Option<Entry>,
    /// The connection that has taken it, and as how many bytes.
    taken: Option<(Arc<Life>, usize)>,
}

/// What a payload has to take back from the ledger.
#[derive(Debug)]
struct Entry {
    ledger: Arc<Ledger>,
    bytes: usize,
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payload")
            .field("remaining", &self.remaining)
            .finish_non_exhaustive()
    }
}

impl Payload {
    /// Makes a payload of `segments` and enters its length in `ledger`.
    ///
    /// Up to 16 segments leave in one system call.
    pub fn new(segments: impl Into<VecDeque<Bytes>>, ledger: &Arc<Ledger>) -> Self {
        let mut payload = Self::untracked(segments);
        let bytes = payload.remaining;
        ledger.enter(bytes);
        payload.entry = Some(Entry {
            ledger: Arc::clone(ledger),
            bytes,
        });
        payload
    }

    /// Makes a payload that no ledger counts.
    pub fn untracked(segments: impl Into<VecDeque<Bytes>>) -> Self {
        let mut segments = segments.into();
        segments.retain(|segment| !segment.is_empty());
        let remaining = segments.iter().map(Bytes::len).sum();
        Self {
            segments,
            remaining,
            entry: None,
            taken: None,
        }
    }

    /// Makes a payload without bytes, which carries an END_STREAM.
    pub(crate) fn empty() -> Self {
        Self {
            segments: VecDeque::new(),
            remaining: 0,
            entry: None,
            taken: None,
        }
    }
}

impl Payload {
    /// Counts it among what the connection has taken for writing.
    pub(crate) fn taken_by(mut self, life: &Arc<Life>) -> Self {
        let counted = life.outbox().enter(self.remaining);
        self.taken = (counted > 0).then(|| (Arc::clone(life), counted));
        self
    }
}

impl Buf for Payload {
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn chunk(&self) -> &[u8] {
        self.segments.front().map_or(&[], |segment| segment)
    }

    fn chunks_vectored<'a>(&'a self, dst: &mut [IoSlice<'a>]) -> usize {
        let filled = dst.len().min(self.segments.len());
        for (slot, segment) in dst.iter_mut().zip(&self.segments) {
            *slot = IoSlice::new(segment);
        }
        filled
    }

    fn advance(&mut self, mut count: usize) {
        assert!(
            count <= self.remaining,
            "cannot advance past the end of a payload"
        );
        self.remaining -= count;
        while let Some(front) = self.segments.front_mut() {
            if count < front.len() {
                front.advance(count);
                return;
            }
            count -= front.len();
            self.segments.pop_front();
        }
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if let Some(entry) = self.entry.take() {
            entry.ledger.settle(entry.bytes, self.remaining > 0);
        }
        if let Some((life, bytes)) = self.taken.take() {
            life.outbox().leave(bytes);
        }
    }
}

/// The bytes of one direction of one stream that `h2` holds and has not written.
///
/// "Written" means given to the kernel, or to a buffer of the connection that is at most 16 KiB
/// long and flushed next.
#[derive(Debug)]
pub struct Ledger {
    outstanding: AtomicUsize,
    discarded: AtomicBool,
    waker: AtomicWaker,
    total: Arc<Buffered>,
}

impl Ledger {
    /// Opens an empty ledger whose entries count in `total` too.
    pub fn new(total: Arc<Buffered>) -> Arc<Self> {
        Arc::new(Self {
            outstanding: AtomicUsize::new(0),
            discarded: AtomicBool::new(false),
            waker: AtomicWaker::new(),
            total,
        })
    }

    /// Tells how many bytes are not written yet.
    pub fn outstanding(&self) -> usize {
        self.outstanding.load(Ordering::Acquire)
    }

    /// Tells whether a payload was thrown away unwritten, as `h2` does when a stream is reset.
    pub fn is_discarded(&self) -> bool {
        self.discarded.load(Ordering::Acquire)
    }

    /// Waits until nothing is outstanding: all of it was written, or thrown away
    /// ([`Ledger::is_discarded`]). One task at a time can wait.
    pub fn poll_empty(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.outstanding() == 0 {
            return Poll::Ready(());
        }
        self.waker.register(cx.waker());
        match self.outstanding() {
            0 => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    fn enter(&self, bytes: usize) {
        self.outstanding.fetch_add(bytes, Ordering::AcqRel);
        self.total.add(bytes);
    }

    fn settle(&self, bytes: usize, discarded: bool) {
        if discarded {
            self.discarded.store(true, Ordering::Release);
        }
        self.total.sub(bytes);
        if self.outstanding.fetch_sub(bytes, Ordering::AcqRel) == bytes {
            self.waker.wake();
        }
    }
}

/// The bytes that a whole process holds for others; what `max_buffered` is compared with.
#[derive(Debug, Default)]
pub struct Buffered(AtomicUsize);

impl Buffered {
    /// Starts at zero.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Adds `bytes` that are held from here on.
    pub fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes back `bytes` that were added before.
    pub fn sub(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Tells the sum.
    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::noop_waker_ref;

    fn payload(ledger: &Arc<Ledger>) -> Payload {
        let segments = [&b"head"[..], b"", b"first", b"second"];
        Payload::new(segments.map(Bytes::from_static).to_vec(), ledger)
    }

    #[test]
    fn segments_leave_together() {
        let payload = payload(&Ledger::new(Buffered::new()));
        let mut slices = [IoSlice::new(&[]); 8];
        assert_eq!(payload.chunks_vectored(&mut slices), 3);
        assert_eq!(&*slices[2], b"second");
        assert_eq!(payload.chunks_vectored(&mut slices[..2]), 2);
    }

    #[test]
    fn advance_crosses_segments() {
        let mut payload = payload(&Ledger::new(Buffered::new()));
        payload.advance(6);
        assert_eq!((payload.chunk(), payload.remaining()), (&b"rst"[..], 9));
        payload.advance(9);
        assert_eq!((payload.chunk(), payload.remaining()), (&b""[..], 0));
    }

    #[test]
    fn a_written_payload_leaves_the_ledger() {
        let total = Buffered::new();
        let ledger = Ledger::new(Arc::clone(&total));
        let mut cx = Context::from_waker(noop_waker_ref());
        let mut payload = payload(&ledger);
        assert_eq!((ledger.outstanding(), total.get()), (15, 15));
        assert!(ledger.poll_empty(&mut cx).is_pending());

        payload.advance(15);
        drop(payload);
        assert!(ledger.poll_empty(&mut cx).is_ready());
        assert_eq!((ledger.is_discarded(), total.get()), (false, 0));
    }

    #[test]
    fn a_discarded_payload_leaves_a_mark() {
        let ledger = Ledger::new(Buffered::new());
        drop(payload(&ledger));
        assert_eq!((ledger.outstanding(), ledger.is_discarded()), (0, true));
    }
}
