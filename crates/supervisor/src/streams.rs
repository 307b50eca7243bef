//! The streams that are open, of whichever session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_bridge::Handle;
use tidegate_lifecycle::Target;

/// What a stream leads to, as metrics name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Forward,
    Ssh,
    Exec,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Forward, Self::Ssh, Self::Exec];

    pub(crate) const fn of(target: &Target) -> Self {
        match target {
            Target::Tcp { .. } => Self::Forward,
            Target::Ssh => Self::Ssh,
            Target::Exec => Self::Exec,
        }
    }

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Ssh => "ssh",
            Self::Exec => "exec",
        }
    }
}

/// The open streams and the bytes of those that have ended.
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    next: u64,
    open: HashMap<u64, (Kind, Handle)>,
    bytes: Bytes,
}

/// Payload bytes in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) up: u64,
    pub(crate) down: u64,
}

impl Streams {
    /// Enters a stream, unless `limit` are open.
    pub(crate) fn enter(self: &Arc<Self>, kind: Kind, limit: usize) -> Option<Stream> {
        let mut inner = self.lock();
        if inner.open.len() >= limit {
            return None;
        }
        let id = inner.next;
        inner.next += 1;
        let handle = Handle::new(Instant::now());
        inner.open.insert(id, (kind, handle.clone()));
        drop(inner);
        Some(Stream {
            id,
            kind,
            handle,
            streams: Arc::clone(self),
        })
    }

    /// How many streams of each kind are in each state.
    pub(crate) fn count(&self) -> HashMap<(Kind, &'static str), u64> {
        let now = Instant::now();
        let mut counts = HashMap::new();
        for (kind, handle) in self.lock().open.values() {
            *counts
                .entry((*kind, handle.progress(now).state))
                .or_default() += 1;
        }
        counts
    }

    /// All bytes that were moved, those of open streams included.
    pub(crate) fn bytes(&self) -> Bytes {
        let now = Instant::now();
        let inner = self.lock();
        inner.open.values().fold(inner.bytes, |sum, (_, handle)| {
            let progress = handle.progress(now);
            Bytes {
                up: sum.up + progress.bytes_up,
                down: sum.down + progress.bytes_down,
            }
        })
    }

    /// The `count` streams that have been stalled longest, the worst first.
    pub(crate) fn stalled_longest(&self, count: usize) -> Vec<Handle> {
        let now = Instant::now();
        let mut stalled: Vec<(Duration, Handle)> = self
            .lock()
            .open
            .values()
            .filter_map(|(_, handle)| Some((handle.progress(now).stalled?, handle.clone())))
            .collect();
        stalled.sort_by_key(|(since, _)| std::cmp::Reverse(*since));
        stalled
            .into_iter()
            .take(count)
            .map(|(_, handle)| handle)
            .collect()
    }

    fn leave(&self, id: u64) {
        let mut inner = self.lock();
        if let Some((_, handle)) = inner.open.remove(&id) {
            let progress = handle.progress(Instant::now());
            inner.bytes.up += progress.bytes_up;
            inner.bytes.down += progress.bytes_down;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One stream's entry, for as long as it is open.
#[derive(Debug)]
pub(crate) struct Stream {
    id: u64,
    kind: Kind,
    handle: Handle,
    streams: Arc<Streams>,
}

impl Stream {
    pub(crate) const fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) const fn handle(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.streams.leave(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_until_its_stream_has_ended() {
        let streams = Arc::new(Streams::default());
        let first = streams.enter(Kind::Forward, 1).unwrap();
        assert!(streams.enter(Kind::Ssh, 1).is_none());
        assert_eq!(streams.count()[&(Kind::Forward, "opening")], 1);
        drop(first);
        assert!(streams.enter(Kind::Ssh, 1).is_some());
        assert!(streams.stalled_longest(9).is_empty());
    }
}
