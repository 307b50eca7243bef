//! Messages into the bytes of a stream.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tidegate_transport::Buffered;
use tidegate_wire::exec::{Dialect, Item, encode};

use crate::cargo::Writer;
use crate::queue::{GATHERED, SPACIOUS};

/// A message below this is gathered behind what waits already.
const SMALL: usize = 512;

/// Bytes of messages that wait, and what of them is payload. Printed, it tells how many and not
/// which.
pub struct ExecWriter {
    dialect: Dialect,
    segments: VecDeque<Segment>,
    gathered: BytesMut,
    gathered_weight: usize,
    weight: usize,
    len: usize,
    total: Arc<Buffered>,
}

struct Segment {
    data: Bytes,
    /// The payload that is taken when the last byte of the segment is.
    weight: usize,
}

impl fmt::Debug for ExecWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecWriter")
            .field("len", &self.len)
            .field("weight", &self.weight)
            .finish_non_exhaustive()
    }
}

impl ExecWriter {
    pub(super) fn new(dialect: Dialect, total: Arc<Buffered>) -> Self {
        Self {
            dialect,
            segments: VecDeque::new(),
            gathered: BytesMut::new(),
            gathered_weight: 0,
            weight: 0,
            len: 0,
            total,
        }
    }

    fn seal(&mut self) {
        if !self.gathered.is_empty() {
            let data = std::mem::take(&mut self.gathered).freeze();
            let weight = std::mem::take(&mut self.gathered_weight);
            self.segments.push_back(Segment { data, weight });
        }
    }

    fn shorten(&mut self, len: usize) {
        self.len -= len;
        self.total.sub(len);
        if self.len == 0 && self.segments.capacity() > SPACIOUS {
            self.segments = VecDeque::new();
        }
    }

    fn whole(&self, item: Item) -> Bytes {
        let (head, payload) = encode(self.dialect, item);
        debug_assert!(payload.is_empty(), "nothing without payload has any");
        head
    }
}

impl Writer for ExecWriter {
    type Item = Item;

    fn push(&mut self, item: Item) {
        let weight = item.weight();
        let (head, payload) = encode(self.dialect, item);
        let len = head.len() + payload.len();
        self.total.add(len);
        self.len += len;
        self.weight += weight;
        if len < SMALL {
            self.gathered.extend_from_slice(&head);
            self.gathered.extend_from_slice(&payload);
            self.gathered_weight += weight;
            if self.gathered.len() >= GATHERED {
                self.seal();
            }
            return;
        }
        self.seal();
        if payload.is_empty() {
            self.segments.push_back(Segment { data: head, weight });
        } else {
            let head = Segment {
                data: head,
                weight: 0,
            };
            let payload = Segment {
                data: payload,
                weight,
            };
            self.segments.extend([head, payload]);
        }
    }

    fn weight(&self) -> usize {
        self.weight
    }

    fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn clear(&mut self) {
        self.segments = VecDeque::new();
        self.gathered = BytesMut::new();
        (self.gathered_weight, self.weight) = (0, 0);
        self.shorten(self.len);
    }

    fn wire_len(&self) -> usize {
        self.len
    }

    fn cut(&mut self, granted: usize) -> (VecDeque<Bytes>, usize) {
        let mut cut = VecDeque::new();
        let (mut room, mut taken) = (granted.max(1), 0);
        while room > 0 {
            if self.segments.is_empty() {
                self.seal();
            }
            let Some(front) = self.segments.front_mut() else {
                break;
            };
            if front.data.len() > room {
                cut.push_back(front.data.split_to(room));
                self.shorten(room);
                break;
            }
            if let Some(Segment { data, weight }) = self.segments.pop_front() {
                room -= data.len();
                taken += weight;
                self.shorten(data.len());
                cut.push_back(data);
            }
        }
        self.weight -= taken;
        (cut, taken)
    }

    fn fin(&self) -> Bytes {
        self.whole(Item::StdinFin)
    }

    fn keepalive(&self) -> Bytes {
        self.whole(Item::Empty)
    }
}

impl Drop for ExecWriter {
    fn drop(&mut self) {
        self.total.sub(self.len);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_lifecycle::exec::{Exit, Output, TerminalSize};
    use tidegate_wire::exec::{Direction, ItemReader};
    use tidegate_wire::frame::FrameLimit;

    use super::*;

    fn event() -> impl Strategy<Value = Item> {
        let data = prop::collection::vec(any::<u8>(), 1..3000);
        prop_oneof![
            4 => (data, any::<u64>()).prop_map(|(data, order)| Item::Output {
                output: Output::Stderr,
                data: data.into(),
                sequence: 7,
                order,
            }),
            1 => any::<i32>().prop_map(|code| Item::Exit(Box::new(Exit::exited(code)))),
        ]
    }

    proptest! {
        #[test]
        fn messages_come_out_whole_and_weigh_what_they_carry(
            items in prop::collection::vec(event(), 0..40),
            granted in 1_usize..5000,
            relay in any::<bool>(),
        ) {
            let dialect = if relay { Dialect::Relay } else { Dialect::Client };
            let total = Buffered::new();
            let mut writer = ExecWriter::new(dialect, Arc::clone(&total));
            for item in &items {
                writer.push(item.clone());
            }
            let weight: usize = items.iter().map(Item::weight).sum();
            prop_assert_eq!(Writer::weight(&writer), weight);
            prop_assert_eq!(writer.wire_len(), total.get());
            let mut reader = ItemReader::new(dialect, Direction::Event, FrameLimit::Strict);
            let (mut out, mut taken) = (Vec::new(), 0);
            while !writer.is_empty() {
                let (segments, weight) = writer.cut(granted);
                let len: usize = segments.iter().map(Bytes::len).sum();
                prop_assert!((1..=granted).contains(&len));
                taken += weight;
                segments.into_iter().for_each(|piece| reader.push(piece));
                while let Some(item) = reader.next().unwrap() {
                    out.push(item);
                }
                let whole: usize = out.iter().map(Item::weight).sum();
                prop_assert!(taken <= whole, "credit for what is not handed over");
            }
            prop_assert_eq!((taken, total.get()), (weight, 0));
            prop_assert_eq!(out, items);
        }
    }

    #[test]
    fn what_waits_is_counted_and_not_printed() {
        let secret = Item::Stdin(Bytes::from_static(b"hunter2"));
        let mut items = crate::exec::Items::new(Buffered::new());
        crate::cargo::Store::push(&mut items, secret.clone());
        let mut writer = ExecWriter::new(Dialect::Relay, Buffered::new());
        writer.push(secret);
        let printed = format!("{items:?} {writer:?}");
        assert!(!printed.contains("hunter2"), "{printed}");
        assert!(printed.contains("weight: 7"), "{printed}");
    }

    #[test]
    fn many_small_messages_become_few_pieces() {
        let mut writer = ExecWriter::new(Dialect::Relay, Buffered::new());
        for cols in 0..10_000 {
            writer.push(Item::Resize(TerminalSize { cols, rows: 1 }));
        }
        let (segments, taken) = writer.cut(usize::MAX);
        assert!(segments.len() < 20, "{}", segments.len());
        assert_eq!(taken, 0);
    }
}
