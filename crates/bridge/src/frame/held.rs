//! Bytes that the frame reader keeps until a message is whole, in the sum of a process.

use std::fmt;
use std::sync::Arc;

use tidegate_transport::Buffered;

/// So many bytes are held, until it is dropped.
pub(super) struct Held {
    bytes: usize,
    total: Arc<Buffered>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Held").field(&self.bytes).finish()
    }
}

impl Held {
    pub(super) fn none(total: &Arc<Buffered>) -> Self {
        Self {
            bytes: 0,
            total: Arc::clone(total),
        }
    }

    /// From here on it is `bytes`.
    pub(super) fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            self.total.add(bytes);
            self.total.sub(self.bytes);
            self.bytes = bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}
