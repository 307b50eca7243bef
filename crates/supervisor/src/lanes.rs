//! The data connections of a session.
//!
//! A gateway moves a relay's bytes on the thread of the client's connection, and tells that thread's
//! number with the request: the relay's lane. All relays of a lane share a connection, which the
//! gateway serves on that thread, and a thread of ours. It is opened when the first relay needs it;
//! another is added when the gateway allows no more streams on it, and a lost one is replaced.

use std::collections::HashMap;
use std::sync::Arc;

use http::HeaderMap;
use tidegate_transport::{Endpoint, Pool, PoolError, ResponseHead, SendHalf, Shard, Shards};
use tidegate_wire::metadata;

/// Lanes beyond this share: a gateway has no more threads than that which are worth telling apart.
const MAX_LANES: u32 = 256;
/// Connections of one lane; each carries at least as many streams as the gateway allows on it.
const MAX_CONNECTIONS: usize = 256;

/// The data connections of one session.
#[derive(Debug)]
pub(crate) struct Lanes {
    endpoint: Endpoint,
    shards: Arc<Shards>,
    lanes: HashMap<u32, Lane>,
}

/// One lane. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Lane {
    number: u32,
    shard: Shard,
    pool: Arc<Pool>,
}

impl Lanes {
    /// Connects to `endpoint`, on threads of `shards`.
    pub(crate) fn new(endpoint: Endpoint, shards: Arc<Shards>) -> Self {
        Self {
            endpoint,
            shards,
            lanes: HashMap::new(),
        }
    }

    /// Connects to `endpoint` from now on.
    pub(crate) fn lead_to(&mut self, endpoint: Endpoint) {
        self.endpoint = endpoint;
        self.lanes.clear();
    }

    /// The lane with this number.
    pub(crate) fn get(&mut self, number: u32) -> Lane {
        let number = number % MAX_LANES;
        let lane = self.lanes.entry(number).or_insert_with(|| Lane {
            number,
            shard: self.shards.get(number as usize),
            pool: Arc::new(Pool::new(self.endpoint.clone(), MAX_CONNECTIONS)),
        });
        lane.clone()
    }
}

impl Lane {
    /// The thread that the lane's relays run on.
    pub(crate) const fn shard(&self) -> &Shard {
        &self.shard
    }

    /// Opens a RelayStream. To be called on the lane's thread, where a new connection stays.
    ///
    /// # Errors
    ///
    /// [`PoolError`] when there is no connection with room, and none can be made.
    ///
    /// # Cancel safety
    ///
    /// Nothing was sent unless the stream was returned.
    pub(crate) async fn open(
        &self,
        mut headers: HeaderMap,
    ) -> Result<(SendHalf, ResponseHead), PoolError> {
        metadata::set_lane(&mut headers, self.number);
        self.pool.open(metadata::RELAY_STREAM, headers).await
    }
}
