//! Messages that wait, in order.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_transport::Buffered;
use tidegate_wire::exec::Item;

use crate::cargo::Store;

/// A queue that has grown past this gives its memory back when it runs empty.
const SPACIOUS: usize = 16;

/// A queue of messages, whose payload counts in the process's sum.
#[derive(Debug)]
pub struct Items {
    items: VecDeque<Item>,
    weight: usize,
    total: Arc<Buffered>,
}

impl Items {
    /// An empty queue whose payload counts in `total`.
    pub const fn new(total: Arc<Buffered>) -> Self {
        Self {
            items: VecDeque::new(),
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
        self.lighten(self.weight);
    }

    fn lighten(&mut self, weight: usize) {
        self.weight -= weight;
        self.total.sub(weight);
        if self.items.is_empty() && self.items.capacity() > SPACIOUS {
            self.items = VecDeque::new();
        }
    }
}

impl Store for Items {
    type Item = Item;

    fn push(&mut self, item: Item) {
        self.weight += item.weight();
        self.total.add(item.weight());
        self.items.push_back(item);
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
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
