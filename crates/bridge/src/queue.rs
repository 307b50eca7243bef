//! Bytes that wait to be written: many small ones become few, and a whole process's are counted.

use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use tidegate_transport::Buffered;

/// Data below this is gathered behind data that waits already.
const TINY: usize = 1024;
/// How much is gathered in one piece.
pub(crate) const GATHERED: usize = 16 * 1024;
/// A queue that has grown past this gives its memory back when it runs empty.
pub(crate) const SPACIOUS: usize = 16;

/// A queue of bytes without boundaries. Printed, it tells how many and not which.
pub struct Queue {
    segments: VecDeque<Bytes>,
    gathered: BytesMut,
    len: usize,
    total: Arc<Buffered>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Queue {
    /// An empty queue whose bytes count in `total`.
    pub fn new(total: Arc<Buffered>) -> Self {
        Self {
            segments: VecDeque::new(),
            gathered: BytesMut::new(),
            len: 0,
            total,
        }
    }

    /// How many bytes wait.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether none wait.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds bytes behind all others.
    pub fn push(&mut self, data: Bytes) {
        if data.is_empty() {
            return;
        }
        self.total.add(data.len());
        let waits = self.len > 0;
        self.len += data.len();
        if waits && data.len() < TINY {
            self.gathered.extend_from_slice(&data);
            if self.gathered.len() >= GATHERED {
                self.seal();
            }
        } else {
            self.seal();
            self.segments.push_back(data);
        }
    }

    /// Takes the next piece, of at most `max` bytes. `max` must not be 0.
    pub fn take(&mut self, max: usize) -> Option<Bytes> {
        if self.segments.is_empty() {
            self.seal();
        }
        let front = self.segments.front_mut()?;
        let piece = if front.len() > max {
            front.split_to(max)
        } else {
            self.segments.pop_front()?
        };
        self.shorten(piece.len());
        Some(piece)
    }

    /// Lends the front of the queue for a vectored write, at most as many pieces as `slots`.
    pub(crate) fn slices<'a>(&'a mut self, slots: &mut [IoSlice<'a>]) -> usize {
        if self.segments.is_empty() {
            self.seal();
        }
        let pieces = self
            .segments
            .iter()
            .zip(slots)
            .map(|(piece, slot)| *slot = IoSlice::new(piece));
        pieces.count()
    }

    /// Drops `count` bytes at the front, which were written.
    pub(crate) fn advance(&mut self, count: usize) {
        let mut left = count;
        while left > 0 {
            let Some(front) = self.segments.front_mut() else {
                break;
            };
            if front.len() > left {
                front.advance(left);
                break;
            }
            left -= front.len();
            self.segments.pop_front();
        }
        self.shorten(count);
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.segments = VecDeque::new();
        self.gathered = BytesMut::new();
        self.shorten(self.len);
    }

    fn seal(&mut self) {
        if !self.gathered.is_empty() {
            self.segments
                .push_back(std::mem::take(&mut self.gathered).freeze());
        }
    }

    fn shorten(&mut self, count: usize) {
        self.len -= count;
        self.total.sub(count);
        if self.len == 0 && self.segments.capacity() > SPACIOUS {
            self.segments = VecDeque::new();
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.total.sub(self.len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_in_order_and_is_counted(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..40),
            max in 1_usize..5000,
        ) {
            let total = Buffered::new();
            let mut queue = Queue::new(Arc::clone(&total));
            for piece in &pieces {
                queue.push(Bytes::copy_from_slice(piece));
            }
            let expected = pieces.concat();
            prop_assert_eq!((queue.len(), total.get()), (expected.len(), expected.len()));
            let mut out = Vec::new();
            while let Some(piece) = queue.take(max) {
                prop_assert!(!piece.is_empty() && piece.len() <= max);
                out.extend_from_slice(&piece);
            }
            prop_assert_eq!(out, expected);
            prop_assert_eq!(total.get(), 0);
        }

        #[test]
        fn advancing_over_lent_slices_loses_nothing(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 0..40),
            step in 1_usize..5000,
        ) {
            let mut queue = Queue::new(Buffered::new());
            for piece in &pieces {
                queue.push(Bytes::copy_from_slice(piece));
            }
            let mut out = Vec::new();
            while !queue.is_empty() {
                let mut slots = [IoSlice::new(&[]); 4];
                let lent = queue.slices(&mut slots);
                let bytes: Vec<u8> = slots[..lent].iter().flat_map(|s| s.to_vec()).collect();
                let written = step.min(bytes.len());
                out.extend_from_slice(&bytes[..written]);
                queue.advance(written);
            }
            prop_assert_eq!(out, pieces.concat());
        }
    }

    #[test]
    fn fc_15_many_tiny_writes_into_a_stalled_reader_become_few_pieces() {
        let mut queue = Queue::new(Buffered::new());
        for _ in 0..50_000 {
            queue.push(Bytes::from_static(b"x"));
        }
        let mut pieces = 0;
        while queue.take(64 * 1024).is_some() {
            pieces += 1;
        }
        assert!(pieces <= 6, "{pieces}");
    }
}
