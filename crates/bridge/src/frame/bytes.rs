//! Bytes as cargo: cut into frames anew on every hop.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::limits::MAX_FRAME;
use tidegate_transport::Buffered;
use tidegate_wire::frame::{self, Frame, FrameError, FrameLimit, FrameReader, Header};

use super::RpcKind;
use crate::cargo::{Cargo, Reader, Store, Writer};
use crate::end::Read;
use crate::queue::Queue;

/// A frame below this leaves in one piece, copied behind its head.
const COPIED: usize = 512;

impl Cargo for Bytes {
    type Store = Queue;
    type Reader = FrameReader;
    type Writer = Queue;

    const OFFERED: Capabilities = Capabilities::STREAM;
    const WAITS_WITHOUT_PAYLOAD: bool = false;

    fn weight(&self) -> usize {
        self.len()
    }

    fn is_last(&self) -> bool {
        false
    }

    fn store(total: &Arc<Buffered>) -> Queue {
        Queue::new(Arc::clone(total))
    }

    fn reader(_kind: RpcKind, limit: FrameLimit) -> FrameReader {
        FrameReader::new(limit)
    }

    fn writer(_kind: RpcKind, total: &Arc<Buffered>) -> Queue {
        Queue::new(Arc::clone(total))
    }
}

impl Store for Queue {
    type Item = Bytes;

    fn push(&mut self, item: Bytes) {
        self.push(item);
    }

    fn pop(&mut self) -> Option<Bytes> {
        self.take(usize::MAX)
    }

    fn weight(&self) -> usize {
        self.len()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }
}

impl Reader for FrameReader {
    type Item = Bytes;

    fn push(&mut self, bytes: Bytes) {
        self.push(bytes);
    }

    fn next(&mut self) -> Result<Option<Read<Bytes>>, FrameError> {
        Ok(self.next()?.map(|frame| match frame {
            Frame::Init(_) => Read::Init,
            Frame::Data(data) if data.is_empty() => Read::Empty,
            Frame::Data(data) => Read::Data(data),
            Frame::HalfClose => Read::FinFrame,
            Frame::Empty | Frame::Unknown => Read::Unknown,
        }))
    }

    fn set_limit(&mut self, limit: FrameLimit) {
        self.set_limit(limit);
    }

    fn buffered(&self) -> usize {
        self.buffered()
    }

    fn gathered(&self) -> usize {
        self.gathered()
    }

    fn is_at_boundary(&self) -> bool {
        self.is_at_boundary()
    }

    fn take_oversize(&mut self) -> u64 {
        self.take_oversize()
    }

    fn forget(&mut self) {
        *self = Self::new(FrameLimit::Legacy);
    }
}

impl Writer for Queue {
    type Item = Bytes;

    fn push(&mut self, item: Bytes) {
        self.push(item);
    }

    fn weight(&self) -> usize {
        self.len()
    }

    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn wire_len(&self) -> usize {
        self.len() + self.len().div_ceil(MAX_FRAME) * Header::MAX_LEN
    }

    fn cut(&mut self, granted: usize) -> (VecDeque<Bytes>, usize) {
        let before = self.len();
        let segments = frame_up(self, granted);
        (segments, before - self.len())
    }

    fn fin(&self) -> Bytes {
        frame::half_close()
    }

    fn keepalive(&self) -> Bytes {
        frame::keepalive()
    }
}

/// Cuts frames from the front of the queue: as many as fit into `granted` bytes, and one at least.
fn frame_up(queue: &mut Queue, granted: usize) -> VecDeque<Bytes> {
    let mut segments = VecDeque::with_capacity(2 * granted.div_ceil(MAX_FRAME).min(8));
    let mut room = granted;
    loop {
        let len = queue
            .len()
            .min(MAX_FRAME)
            .min(room.saturating_sub(Header::MAX_LEN).max(1));
        let head = frame::data_header(len);
        room = room.saturating_sub(head.len() + len);
        if len < COPIED {
            segments.push_back(copied(&head, queue, len));
        } else {
            segments.push_back(head.into());
            let mut left = len;
            while left > 0
                && let Some(piece) = queue.take(left)
            {
                left -= piece.len();
                segments.push_back(piece);
            }
        }
        if queue.is_empty() || room <= Header::MAX_LEN {
            return segments;
        }
    }
}

fn copied(head: &[u8], queue: &mut Queue, len: usize) -> Bytes {
    let mut whole = BytesMut::with_capacity(head.len() + len);
    whole.extend_from_slice(head);
    let mut left = len;
    while left > 0
        && let Some(piece) = queue.take(left)
    {
        left -= piece.len();
        whole.extend_from_slice(&piece);
    }
    whole.freeze()
}
