//! How many frames came that no peer with `frame-limit-v1` may send.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count that many streams add to while they run. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct OversizeFrames(Arc<AtomicU64>);

impl OversizeFrames {
    /// The frames above 64 KiB that were seen so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, frames: u64) {
        self.0.fetch_add(frames, Ordering::Relaxed);
    }
}
