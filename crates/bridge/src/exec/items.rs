//! Messages that wait, in order.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use tidegate_transport::Buffered;
use tidegate_wire::exec::Item;

use crate::cargo::Store;
use crate::queue::SPACIOUS;

/// A queue of messages, whose payload counts in the process's sum. Printed, it tells how many and
/// not which.
pub struct Items {
    items: VecDeque<Item>,
    /// How many of them need not wait for those before them.
    urgent: usize,
    weight: usize,
    total: Arc<Buffered>,
}

impl fmt::Debug for Items {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items")
            .field("count", &self.count())
            .field("weight", &self.weight)
            .finish_non_exhaustive()
    }
}

impl Items {
    /// An empty queue whose payload counts in `total`.
    pub const fn new(total: Arc<Buffered>) -> Self {
        Self {
            items: VecDeque::new(),
            urgent: 0,
            weight: 0,
            total,
        }
    }

    /// How many messages wait.
    pub fn count(&self) -> usize {
        self.items.len()
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.items = VecDeque::new();
        self.urgent = 0;
        self.lighten(self.weight);
    }

    /// Takes the first thing that means the same before what was said earlier.
    pub(super) fn pop_urgent(&mut self) -> Option<Item> {
        let urgent = (self.urgent > 0).then(|| self.items.iter().position(is_urgent));
        let item = self.items.remove(urgent??)?;
        self.urgent -= 1;
        Some(item)
    }

    fn lighten(&mut self, weight: usize) {
        self.weight -= weight;
        self.total.sub(weight);
        if self.items.is_empty() && self.items.capacity() > SPACIOUS {
            self.items = VecDeque::new();
        }
    }
}

/// Whether it is about the command and not part of its input.
const fn is_urgent(item: &Item) -> bool {
    matches!(item, Item::Signal(_) | Item::Resize(_))
}

impl Store for Items {
    type Item = Item;

    fn push(&mut self, item: Item) {
        self.urgent += usize::from(is_urgent(&item));
        self.weight += item.weight();
        self.total.add(item.weight());
        self.items.push_back(item);
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.urgent -= usize::from(is_urgent(&item));
        self.lighten(item.weight());
        Some(item)
    }

    fn weight(&self) -> usize {
        self.weight
    }

    fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        self.total.sub(self.weight);
    }
}
