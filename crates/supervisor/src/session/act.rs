//! What the session does about what it was told, and about its relays.

use std::sync::Arc;
use std::time::Duration;

use tidegate_lifecycle::Capability;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::id::ChannelId;
use tidegate_lifecycle::limits::STATUS_GRACE;
use tidegate_lifecycle::redial::Ended;
use tidegate_lifecycle::session::{
    Accepted, FromSupervisor, RelayClose, RelayOpen, SupervisorAction,
};
use tidegate_wire::session::encode_supervisor;
use tokio::time::{Instant, timeout_at};

use super::{News, Session};
use crate::memory;
use crate::relay::{Relay, Report, Terms};
use crate::streams::{Kind, Stream};

/// How much longer than its gateway lets them the streams of a session that was let go may take: it is
/// the gateway that ends them, and says why.
const EVICTION_SLACK: Duration = Duration::from_secs(30);
/// How long they may take if the gateway has said nothing.
const UNDISTURBED: Duration = Duration::from_secs(3600);

impl Session {
    pub(super) fn act(&mut self, action: SupervisorAction) {
        match action {
            SupervisorAction::Begin(accepted) => self.begin(accepted),
            SupervisorAction::Dial(open) => self.open_relay(open),
            SupervisorAction::Refuse { channel, end } => self.refuse(channel, end),
            SupervisorAction::Abort { channel, end } => match self.relays.get(&channel) {
                Some(leash) => leash.told(end),
                None => self.ignore(&channel, "the end of a stream that is not here"),
            },
            SupervisorAction::Note { channel, text } => {
                tracing::debug!(%channel, text, "the gateway closed a stream");
            }
            SupervisorAction::Move {
                deadline,
                alternatives,
            } => {
                self.evicted = Instant::now().checked_add(deadline);
                self.news.push_back(News::AskedToMove { alternatives });
            }
            SupervisorAction::CountUnknown => self.context.metrics.ignored(),
            SupervisorAction::Heartbeat => self.say(&FromSupervisor::Heartbeat),
            SupervisorAction::Nothing => {}
        }
    }

    fn begin(&mut self, accepted: Accepted) {
        tracing::info!(
            gateway = self.gateway,
            gateway_id = accepted.gateway,
            session = %accepted.session,
            sandbox = %self.context.config.sandbox,
            "session established"
        );
        if !self.agreed(Capability::SessionLiveness) {
            tracing::warn!(
                "the gateway promises no heartbeats: its silence is not taken for its end"
            );
        }
        // Behind a balancer another call of the same address may end at another gateway.
        let told = accepted.public_url.as_deref();
        if let Some(endpoint) = told.and_then(|url| self.ready.endpoint(url)) {
            self.lanes.lead_to(endpoint);
        }
        self.standing = Some(self.context.metrics.session());
        self.terms = Some(Terms {
            session: accepted.session.clone(),
            agreed: self.machine.agreed(),
        });
        self.news.push_back(News::Began(accepted));
    }

    fn open_relay(&mut self, open: RelayOpen) {
        if self.relays.contains_key(&open.channel) {
            return self.ignore(&open.channel, "a second request for the same stream");
        }
        let Some(terms) = self.terms.clone() else {
            return;
        };
        let kind = Kind::of(&open.target);
        let stream = match self.admit(kind) {
            Ok(stream) => stream,
            Err(end) => {
                self.context.metrics.never_opened(kind, end.cause());
                return self.refuse(open.channel, end);
            }
        };
        let lane = self.lanes.get(open.lane);
        let shard = lane.shard().clone();
        let channel = open.channel.clone();
        let context = Arc::clone(&self.context);
        let (relay, leash) = Relay::new(context, terms, lane, stream, open, self.reporter.clone());
        self.relays.insert(channel, leash);
        shard.spawn("relay", self.context.relays.track_future(relay.run()));
    }

    fn ignore(&self, channel: &ChannelId, what: &str) {
        self.context.metrics.ignored();
        tracing::debug!(%channel, "ignored: {what}");
    }

    fn admit(&self, kind: Kind) -> Result<Stream, End> {
        if let Some(end) = memory::refusal(&self.context) {
            return Err(end);
        }
        let limit = self.context.config.max_streams;
        self.context.streams.enter(kind, limit).ok_or_else(|| {
            let message = format!("the supervisor has {limit} streams open, as many as it may");
            End::new(Origin::Supervisor, Reason::LimitStreams, message)
        })
    }

    pub(super) fn take(&mut self, report: Report) {
        match report {
            Report::Dialled(channel, Err(end)) => {
                self.relays.remove(&channel);
                self.say(&FromSupervisor::RelayOpenResult {
                    channel,
                    result: Err(end),
                });
            }
            Report::Dialled(channel, result) => {
                self.say(&FromSupervisor::RelayOpenResult { channel, result });
            }
            Report::Ended(channel, end) => {
                self.relays.remove(&channel);
                if let Some(end) = end.filter(|_| self.agreed(Capability::RelayAbort)) {
                    self.say(&FromSupervisor::RelayClose(RelayClose::Abort {
                        channel,
                        end,
                    }));
                }
            }
        }
    }

    fn refuse(&mut self, channel: ChannelId, end: End) {
        tracing::debug!(%channel, %end, "stream refused");
        let end = end.via(&self.context.hop).on(channel.clone());
        self.say(&FromSupervisor::RelayOpenResult {
            channel,
            result: Err(end),
        });
    }

    /// Another session has taken over: no new streams here, and those that are open go on for as long
    /// as the gateway lets them.
    pub(super) fn retire(&mut self) {
        let evicted = self
            .evicted
            .map(|at| at.saturating_duration_since(Instant::now()));
        let deadline = evicted.unwrap_or(UNDISTURBED) + self.context.config.scaled(EVICTION_SLACK);
        if self.machine.replaced() {
            self.say(&FromSupervisor::Goodbye { deadline });
        }
        self.drains();
        tracing::info!(
            gateway = self.gateway,
            streams = self.relays.len(),
            "another session takes new streams"
        );
    }

    fn drains(&mut self) {
        if let Some(standing) = &mut self.standing {
            standing.drains();
        }
    }

    /// We were told to stop: no new streams, and those that are open may finish for a while.
    pub(super) fn leave(&mut self) {
        let grace = self.context.config.scaled(self.context.config.stop_grace);
        if self.machine.leave() {
            self.say(&FromSupervisor::Goodbye { deadline: grace });
        }
        self.drains();
        tracing::info!(streams = self.relays.len(), ?grace, "leaving");
        self.leaving = Some(Instant::now() + grace);
    }

    /// The grace is over: ends what is open, and then the session although something is left.
    pub(super) fn insist(&mut self) -> Result<(), Ended> {
        let end = End::new(
            Origin::Supervisor,
            Reason::SupervisorStopped,
            "the supervisor was stopped",
        );
        if std::mem::replace(&mut self.insisted, true) {
            return Err(Ended::With(end));
        }
        for leash in self.relays.values() {
            leash.close(end.clone());
        }
        self.leaving = Some(Instant::now() + STATUS_GRACE);
        Ok(())
    }

    /// The session is gone, and its relays with it.
    pub(super) fn lose(&self, how: &Ended) {
        let end = match how {
            Ended::With(end) => end.clone(),
            Ended::Removed => {
                let message = "the sandbox was removed";
                End::new(Origin::Gateway, Reason::SandboxNotFound, message)
            }
        };
        for leash in self.relays.values() {
            leash.told(end.clone());
        }
    }

    /// Gave the session up because nothing was heard. The gateway may hear us all the same: its
    /// relays are told why they end, before the loss of the connection says less.
    pub(super) async fn explain(&mut self, how: &Ended) {
        let Ended::With(end) = how else { return };
        if end.reason != Reason::HeartbeatTimeout || !self.agreed(Capability::RelayAbort) {
            return;
        }
        let end = end.clone().via(&self.context.hop);
        let channels: Vec<_> = self.relays.keys().cloned().collect();
        for channel in channels {
            let end = end.clone().on(channel.clone());
            self.say(&FromSupervisor::RelayClose(RelayClose::Abort {
                channel,
                end,
            }));
        }
        // On a line that takes nothing any more there is nobody to tell.
        let _ = timeout_at(Instant::now() + STATUS_GRACE, self.control.sender.flush()).await;
    }

    fn say(&mut self, message: &FromSupervisor) {
        self.overrun |= !self.control.sender.push(encode_supervisor(message));
        self.unflushed = true;
    }

    pub(super) fn agreed(&self, capability: Capability) -> bool {
        self.machine.agreed().has(capability)
    }
}
