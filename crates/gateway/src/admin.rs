//! What the admin address tells: whether the gateway serves, and the page of metrics: what was counted,
//! and what is read off the gateway as it is.

use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use tidegate_bridge::OPEN_STATES;
use tidegate_daemon::{Health, process};
use tidegate_lifecycle::drain::Left;
use tidegate_lifecycle::session::GatewayState;
use tidegate_transport::Shards;

use crate::state::State;
use crate::stream::Kind;

type Labels<const N: usize> = [(&'static str, &'static str); N];

/// Tells about a gateway.
pub(crate) struct Told {
    state: Arc<State>,
    shards: Arc<Shards>,
    /// One reader at a time, so that no gauge is seen half-set.
    page: Mutex<Page>,
}

struct Page {
    registry: Registry,
    gauges: Gauges,
}

#[derive(Default)]
struct Gauges {
    sessions: Family<Labels<1>, Gauge>,
    streams: Family<Labels<2>, Gauge>,
    pending: Gauge,
    execs: Gauge,
    peer_streams: Gauge,
    peer_connections: Gauge,
    bytes: Family<Labels<1>, Counter>,
    buffered: Gauge,
    tasks: Gauge,
    remaining: Family<Labels<1>, Gauge>,
}

impl Told {
    /// Tells about `state`, whose tasks run on `shards`.
    pub(crate) fn new(state: Arc<State>, shards: Arc<Shards>) -> Self {
        let mut registry = Registry::default();
        state.metrics.register(&mut registry);
        let gauges = Gauges::default();
        gauges.register(&mut registry);
        process::register(registry.sub_registry_with_prefix("tidegate"));
        Self {
            state,
            shards,
            page: Mutex::new(Page { registry, gauges }),
        }
    }
}

impl Health for Told {
    fn ready(&self) -> Result<&'static str, String> {
        if self.state.draining.is_cancelled() {
            return Err("the gateway is shutting down".to_owned());
        }
        Ok("ok")
    }

    fn metrics(&self) -> String {
        let page = self.page.lock().unwrap_or_else(PoisonError::into_inner);
        page.gauges.set(&self.state, &self.shards);
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &page.registry) {
            tracing::error!(%error, "metrics cannot be written");
        }
        text
    }
}

impl Gauges {
    fn register(&self, registry: &mut Registry) {
        let sessions = "Supervisors' sessions, by what they may do";
        registry.register("tidegate_sessions", sessions, self.sessions.clone());
        let streams = "Streams that are open, by what they are and do";
        registry.register("tidegate_streams", streams, self.streams.clone());
        let pending = "Streams that wait for their path";
        registry.register("tidegate_pending_relays", pending, self.pending.clone());
        let execs = "Commands that run, or are being started";
        registry.register("tidegate_execs", execs, self.execs.clone());
        let peers = "Streams that cross another gateway on their way";
        registry.register("tidegate_peer_streams", peers, self.peer_streams.clone());
        let peers = "Connections that this gateway has to others";
        registry.register(
            "tidegate_peer_connections",
            peers,
            self.peer_connections.clone(),
        );
        let bytes = "Payload carried; upstream is towards the target";
        registry.register("tidegate_stream_bytes", bytes, self.bytes.clone());
        let buffered = "Payload held for slow readers";
        registry.register("tidegate_buffered_bytes", buffered, self.buffered.clone());
        let tasks = "Tasks that serve connections and calls";
        registry.register("tidegate_process_tasks", tasks, self.tasks.clone());
        let remaining =
            "What the gateway still waits for before it leaves; 0 while it does not leave";
        registry.register(
            "tidegate_drain_remaining",
            remaining,
            self.remaining.clone(),
        );
    }

    fn set(&self, state: &State, shards: &Shards) {
        self.set_sessions(state);
        self.set_streams(state);
        self.pending.set(signed(state.streams.pending()));
        self.execs.set(signed(state.streams.execs()));
        let peers = state.streams.all();
        let peers = peers.iter().filter(|entry| entry.has_peer()).count();
        self.peer_streams.set(signed(peers));
        self.peer_connections.set(signed(state.peers.connections()));
        self.buffered.set(signed(state.buffered.get()));
        let tasks = (0..shards.count())
            .map(|index| shards.get(index).tasks())
            .sum();
        self.tasks.set(signed(tasks));
        self.set_remaining(state);
        let carried = state.streams.carried();
        for (direction, bytes) in [("upstream", carried.up), ("downstream", carried.down)] {
            let counter = self.bytes.get_or_create(&[("direction", direction)]);
            counter.inc_by(bytes.saturating_sub(counter.get()));
        }
    }

    fn set_remaining(&self, state: &State) {
        let left = if state.draining.is_cancelled() {
            state.left()
        } else {
            Left::default()
        };
        for (what, count) in [("streams", left.streams), ("sessions", left.sessions)] {
            self.remaining
                .get_or_create(&[("what", what)])
                .set(signed(count));
        }
    }

    fn set_sessions(&self, state: &State) {
        self.sessions.clear();
        for phase in [GatewayState::Live, GatewayState::DrainOnly] {
            let _ = self.sessions.get_or_create(&[("state", phase.as_str())]);
        }
        for (_, phase) in state.sessions.all() {
            self.sessions
                .get_or_create(&[("state", phase.as_str())])
                .inc();
        }
    }

    fn set_streams(&self, state: &State) {
        self.streams.clear();
        for kind in Kind::ALL {
            for state in OPEN_STATES {
                let labels = [("kind", kind.as_str()), ("state", state)];
                let _ = self.streams.get_or_create(&labels);
            }
        }
        for entry in state.streams.all() {
            let word = entry.progress().state;
            // One that has ended is about to leave the table.
            if !OPEN_STATES.contains(&word) {
                continue;
            }
            let labels = [("kind", entry.kind().as_str()), ("state", word)];
            self.streams.get_or_create(&labels).inc();
        }
    }
}

fn signed(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
