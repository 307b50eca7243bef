//! The connections of one thread to one gateway.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::HeaderMap;
use tidegate_transport::{Endpoint, Pool, PoolError, ResponseHead, SendHalf};
use tidegate_wire::metadata::PEER_RELAY;

/// Connections that are used in turn, and further ones where those are full.
#[derive(Debug)]
pub(crate) struct Slot {
    pools: Vec<Pool>,
    next: AtomicUsize,
    used: Mutex<Instant>,
}

impl Slot {
    /// Spreads streams over `width` connections from the beginning, and over at most `limit`.
    pub(crate) fn new(endpoint: &Endpoint, width: usize, limit: usize) -> Self {
        let width = width.clamp(1, limit.max(1));
        let pools = (0..width).map(|_| Pool::new(endpoint.clone(), limit.div_ceil(width)));
        Self {
            pools: pools.collect(),
            next: AtomicUsize::new(0),
            used: Mutex::new(Instant::now()),
        }
    }

    /// Opens a call. Full connections are passed over; only if all are, and there may be no more, it
    /// fails, and at once.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing was sent unless the call was returned.
    pub(crate) async fn open(
        &self,
        headers: &HeaderMap,
    ) -> Result<(SendHalf, ResponseHead), PoolError> {
        self.touch();
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        let count = self.pools.len();
        let mut full = 0;
        for offset in 0..count {
            let pool = &self.pools[(first + offset) % count];
            match pool.open(PEER_RELAY, headers.clone()).await {
                Err(PoolError::Full(limit)) => full += limit,
                other => return other,
            }
        }
        Err(PoolError::Full(full))
    }

    pub(crate) fn connections(&self) -> usize {
        self.pools.iter().map(Pool::connections).sum()
    }

    pub(crate) fn streams(&self) -> usize {
        self.pools.iter().map(Pool::active_streams).sum()
    }

    /// Lets go of connections that have had no stream for `idle`. Says whether none is left.
    pub(crate) fn rest(&self, idle: Duration) -> bool {
        if self.streams() > 0 {
            self.touch();
            return false;
        }
        if self.since_used() < idle {
            return false;
        }
        for pool in &self.pools {
            pool.let_go_unused();
        }
        true
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn since_used(&self) -> Duration {
        self.used
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .elapsed()
    }
}
