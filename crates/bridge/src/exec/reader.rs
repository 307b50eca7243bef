//! Messages out of the bytes of a stream.

use bytes::Bytes;
use tidegate_wire::exec::{Dialect, Direction, Item, ItemReader};
use tidegate_wire::frame::{FrameError, FrameLimit};

use crate::cargo::Reader;
use crate::end::Read;

/// Reads items, and can begin anew in the same words.
#[derive(Debug)]
pub struct ExecReader {
    dialect: Dialect,
    direction: Direction,
    /// What was read before there was an end, in the place of its messages.
    before: Vec<Item>,
    items: ItemReader,
}

impl ExecReader {
    pub(super) fn new(dialect: Dialect, direction: Direction, limit: FrameLimit) -> Self {
        let items = ItemReader::new(dialect, direction, limit);
        Self::behind(dialect, direction, [], items)
    }

    pub(super) fn behind(
        dialect: Dialect,
        direction: Direction,
        before: impl IntoIterator<Item = Item>,
        items: ItemReader,
    ) -> Self {
        let mut before: Vec<_> = before.into_iter().collect();
        before.reverse();
        Self {
            dialect,
            direction,
            before,
            items,
        }
    }
}

impl Reader for ExecReader {
    type Item = Item;

    fn push(&mut self, bytes: Bytes) {
        self.items.push(bytes);
    }

    fn next(&mut self) -> Result<Option<Read<Item>>, FrameError> {
        if let Some(item) = self.before.pop() {
            return Ok(Some(Read::Data(item)));
        }
        Ok(self.items.next()?.map(Read::Data))
    }

    fn set_limit(&mut self, limit: FrameLimit) {
        self.items.set_limit(limit);
    }

    fn buffered(&self) -> usize {
        self.items.buffered()
    }

    fn gathered(&self) -> usize {
        self.items.gathered()
    }

    fn is_at_boundary(&self) -> bool {
        self.items.is_at_boundary()
    }

    fn take_oversize(&mut self) -> u64 {
        self.items.take_oversize()
    }

    fn forget(&mut self) {
        self.items = ItemReader::new(self.dialect, self.direction, FrameLimit::Legacy);
    }
}
