//! What all parts of a gateway share.

use std::sync::Arc;

use tidegate_directory::Directory;
use tidegate_lifecycle::drain::Left;
use tidegate_lifecycle::id::{GatewayId, HopName};
use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_peer_relay::{Doorkeeper, Peers};
use tidegate_transport::Buffered;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::claims::Claims;
use crate::config::{Config, Peering, Times};
use crate::metrics::Metrics;
use crate::session::Sessions;
use crate::stream::Streams;
use crate::tickets::Tickets;
use crate::waiting::Waiting;

/// One gateway. Everything in it is shared, and locked for moments only.
pub(crate) struct State {
    pub(crate) config: Config,
    pub(crate) times: Times,
    pub(crate) id: GatewayId,
    pub(crate) hop: HopName,
    pub(crate) directory: Arc<dyn Directory>,
    pub(crate) sessions: Sessions,
    pub(crate) claims: Claims,
    pub(crate) streams: Arc<Streams>,
    pub(crate) waiting: Waiting,
    pub(crate) tickets: Tickets,
    /// The gateways that this one asks.
    pub(crate) peers: Peers,
    /// Decides which of them may ask this one.
    pub(crate) doorkeeper: Doorkeeper,
    pub(crate) metrics: Arc<Metrics>,
    /// Payload held for slow readers, in the whole process.
    pub(crate) buffered: Arc<Buffered>,
    /// Every task that serves a call or a connection.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when the gateway is about to leave: it is not ready, and takes no sessions.
    pub(crate) draining: CancellationToken,
    /// Cancelled when the gateway takes nothing new and ends what it has.
    pub(crate) closed: CancellationToken,
}

impl State {
    pub(crate) fn new(config: Config, directory: Arc<dyn Directory>, peering: Peering) -> Self {
        let Peering { peers, doorkeeper } = peering;
        let times = config.times();
        let id = config.gateway_id.0.clone();
        let metrics = Arc::new(Metrics::default());
        let buffered = Buffered::new();
        Self {
            hop: HopName::new(id.as_str()),
            sessions: Sessions::default(),
            claims: Claims::default(),
            streams: Streams::new(&config, Arc::clone(&buffered), Arc::clone(&metrics)),
            waiting: Waiting::new(config.max_streams),
            tickets: Tickets::new(times.ssh_session),
            peers,
            doorkeeper,
            metrics,
            buffered,
            tasks: TaskTracker::new(),
            draining: CancellationToken::new(),
            closed: CancellationToken::new(),
            directory,
            config,
            times,
            id,
        }
    }

    /// An end that this gateway decides, with its name on the path.
    pub(crate) fn end(&self, reason: Reason, message: impl Into<String>) -> End {
        End::new(Origin::Gateway, reason, message).via(&self.hop)
    }

    /// What is open here.
    pub(crate) fn left(&self) -> Left {
        Left {
            streams: self.streams.len(),
            sessions: self.sessions.len(),
        }
    }

    /// Why nothing new is taken, and everything open ends.
    pub(crate) fn drained(&self) -> End {
        self.end(
            Reason::GatewayDraining,
            "the gateway is shutting down: connect again shortly",
        )
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
