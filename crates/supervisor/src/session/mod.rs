//! One session: a control stream from hello to its end, and the relays that it asks for.
//!
//! One task owns it. It waits for the gateway's messages, its relays' reports and the clock, and for
//! nothing else: dialling, data connections and targets are the relays' own business, each in a task
//! of its own. When the session ends, so do they.

mod control;
mod finale;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_bridge::Said;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::id::ChannelId;
use tidegate_lifecycle::limits::{HEARTBEAT_INTERVAL, STATUS_GRACE};
use tidegate_lifecycle::redial::Ended;
use tidegate_lifecycle::session::{
    Accepted, FromSupervisor, Hello, RelayClose, RelayOpen, SupervisorAction, SupervisorSession,
};
use tidegate_lifecycle::{Capabilities, Capability};
use tidegate_transport::{Endpoint, Shards};
use tidegate_wire::session::{decode_gateway, encode_supervisor};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use self::control::Control;
use crate::Phase;
use crate::context::Context;
use crate::lanes::Lanes;
use crate::memory;
use crate::relay::{Leash, Relay, Report, Terms};
use crate::streams::Kind;

/// The version of the protocol that this supervisor speaks.
const PROTOCOL_VERSION: u32 = 1;
/// How long a gateway may take to answer hello.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Reports that may wait for the session's task; more make their relays wait.
const REPORTS: usize = 1024;

/// How an attempt at a session, or the session, was over.
#[derive(Debug)]
pub(crate) enum Over {
    /// It ended, and did not stand before if `stood` is unset.
    Ended { how: Ended, stood: Option<Duration> },
    /// We were told to stop, and did.
    Stopped,
}

/// Where a session is opened to.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub(crate) url: String,
    pub(crate) endpoint: Endpoint,
}

/// Opens a session at `gateway` and serves it until it is over.
pub(crate) async fn serve(
    context: &Arc<Context>,
    shards: &Arc<Shards>,
    gateway: &Gateway,
    stop: &CancellationToken,
) -> Over {
    let accept_by = Instant::now() + context.config.scaled(ACCEPT_TIMEOUT);
    let Some(opened) = stop
        .run_until_cancelled(open(context, shards, gateway, accept_by))
        .await
    else {
        return Over::Stopped;
    };
    match opened {
        Ok(session) => session.run(stop).await,
        Err(how) => Over::Ended { how, stood: None },
    }
}

async fn open(
    context: &Arc<Context>,
    shards: &Arc<Shards>,
    gateway: &Gateway,
    by: Instant,
) -> Result<Session, Ended> {
    let late = |_| {
        let message = "the gateway did not answer in time";
        Ended::With(End::new(Origin::Gateway, Reason::TransportLost, message))
    };
    let hello = Hello {
        sandbox: context.config.sandbox.clone(),
        instance: context.instance.clone(),
        capabilities: Capabilities::SESSION,
        protocol_version: PROTOCOL_VERSION,
    };
    let opening = Control::open(context, &gateway.endpoint, hello);
    let control = timeout_at(by, opening).await.map_err(late)??;
    let mut session = Session::new(context, shards, gateway, control);
    timeout_at(by, session.accepted()).await.map_err(late)??;
    Ok(session)
}

struct Session {
    context: Arc<Context>,
    gateway: String,
    machine: SupervisorSession,
    control: Control,
    /// Something is queued on the control stream that was not written yet.
    unflushed: bool,
    terms: Option<Terms>,
    since: Instant,
    lanes: Lanes,
    relays: HashMap<ChannelId, Leash>,
    reports: mpsc::Receiver<Report>,
    reporter: mpsc::Sender<Report>,
    leaving: Option<Instant>,
    insisted: bool,
}

/// What the session's task wakes up for.
enum Event {
    Said(Said),
    Report(Report),
    Timer,
    /// All was written, or the stream is lost: how, is what the receiving half says next.
    Written,
    Stop,
    GraceOver,
}

impl Session {
    fn new(
        context: &Arc<Context>,
        shards: &Arc<Shards>,
        gateway: &Gateway,
        control: Control,
    ) -> Self {
        let now = Instant::now();
        let interval = context.config.scaled(HEARTBEAT_INTERVAL);
        let (reporter, reports) = mpsc::channel(REPORTS);
        Self {
            context: Arc::clone(context),
            gateway: gateway.url.clone(),
            machine: SupervisorSession::new(Capabilities::SESSION, interval, now.into_std()),
            control,
            unflushed: true,
            terms: None,
            since: now,
            lanes: Lanes::new(gateway.endpoint.clone(), Arc::clone(shards)),
            relays: HashMap::new(),
            reports,
            reporter,
            leaving: None,
            insisted: false,
        }
    }

    /// Waits for the answer to hello.
    async fn accepted(&mut self) -> Result<(), Ended> {
        while self.terms.is_none() {
            match self.control.receiver.next().await {
                said @ Said::Message(_) => match self.hear(said) {
                    Ok(()) => {}
                    Err(rejection) => return Err(self.explanation(rejection).await),
                },
                said => self.hear(said)?,
            }
        }
        Ok(())
    }

    /// After a rejection comes the status that says the same, with its reason.
    async fn explanation(&mut self, rejection: Ended) -> Ended {
        let by = Instant::now() + STATUS_GRACE;
        match timeout_at(by, self.control.receiver.next()).await {
            Ok(Said::Status(Err(end))) => finale::told(Err(end), false),
            Ok(_) | Err(_) => rejection,
        }
    }

    async fn run(mut self, stop: &CancellationToken) -> Over {
        let how = loop {
            let event = self.next(stop).await;
            if let Err(how) = self.handle(event) {
                break Some(how);
            }
            if self.leaving.is_some() && self.relays.is_empty() {
                break None;
            }
        };
        self.context.metrics.no_session();
        let Some(how) = how else {
            // A gateway that does not answer is not worth more than this.
            let _ = timeout_at(Instant::now() + STATUS_GRACE, self.control.finish()).await;
            return Over::Stopped;
        };
        self.lose(&how);
        if self.leaving.is_some() {
            return Over::Stopped;
        }
        let stood = Some(self.since.elapsed());
        Over::Ended { how, stood }
    }

    async fn next(&mut self, stop: &CancellationToken) -> Event {
        let timer = Instant::from_std(self.machine.poll_timeout());
        let grace = self.leaving.unwrap_or(timer);
        tokio::select! {
            _ = self.control.sender.flush(), if self.unflushed => Event::Written,
            said = self.control.receiver.next() => Event::Said(said),
            Some(report) = self.reports.recv() => Event::Report(report),
            () = sleep_until(timer) => Event::Timer,
            () = stop.cancelled(), if self.leaving.is_none() => Event::Stop,
            () = sleep_until(grace), if self.leaving.is_some() => Event::GraceOver,
        }
    }

    fn handle(&mut self, event: Event) -> Result<(), Ended> {
        match event {
            Event::Said(said) => return self.hear(said),
            Event::Report(report) => self.take(report),
            Event::Timer => {
                let action = self.machine.handle_timeout(Instant::now().into_std());
                self.act(action.map_err(Ended::With)?);
            }
            Event::Written => self.unflushed = false,
            Event::Stop => self.leave(),
            Event::GraceOver => self.insist()?,
        }
        Ok(())
    }

    fn hear(&mut self, said: Said) -> Result<(), Ended> {
        let stood = self.terms.is_some();
        let message = match said {
            Said::Message(message) => message,
            Said::Status(status) => return Err(finale::told(status, stood)),
            Said::End => {
                let message = "the session ended without a status";
                let end = End::new(Origin::Gateway, Reason::TransportLost, message);
                return Err(Ended::With(end));
            }
            Said::Malformed(error) => {
                let what = format!("sent something that is no message: {error}");
                return Err(Ended::With(finale::violation(&what)));
            }
            Said::Lost(loss) => return Err(Ended::With(control::lost(loss))),
        };
        match decode_gateway(message) {
            Ok(message) => {
                let action = self.machine.recv(message, Instant::now().into_std());
                self.act(action.map_err(Ended::With)?);
            }
            Err(error) if !stood => {
                let what = format!("sent an answer to hello that cannot be read: {error}");
                return Err(Ended::With(finale::violation(&what)));
            }
            // One request that makes no sense is not worth a session: its gateway gives it up.
            Err(error) => {
                self.context.metrics.unknown_message();
                tracing::debug!(%error, "a control message cannot be read");
            }
        }
        Ok(())
    }

    fn act(&mut self, action: SupervisorAction) {
        match action {
            SupervisorAction::Begin(accepted) => self.begin(accepted),
            SupervisorAction::Dial(open) => self.open_relay(open),
            SupervisorAction::Refuse { channel, end } => self.refuse(channel, end),
            SupervisorAction::Abort { channel, end } => match self.relays.get(&channel) {
                Some(leash) => leash.told(end),
                None => tracing::debug!(%channel, "told of the end of a stream that is not here"),
            },
            SupervisorAction::Note { channel, text } => {
                tracing::debug!(%channel, text, "the gateway closed a stream");
            }
            SupervisorAction::CountUnknown => self.context.metrics.unknown_message(),
            SupervisorAction::Heartbeat => self.say(&FromSupervisor::Heartbeat),
            SupervisorAction::Nothing => {}
        }
    }

    fn begin(&mut self, accepted: Accepted) {
        self.since = Instant::now();
        tracing::info!(
            gateway = self.gateway,
            gateway_id = accepted.gateway,
            session = %accepted.session,
            sandbox = %self.context.config.sandbox,
            "session established"
        );
        self.context.metrics.session("live");
        self.context.phase.send_replace(Phase::Live {
            gateway: self.gateway.clone(),
            session: accepted.session.clone(),
        });
        self.terms = Some(Terms {
            session: accepted.session,
            agreed: self.machine.agreed(),
        });
    }

    fn open_relay(&mut self, open: RelayOpen) {
        if self.relays.contains_key(&open.channel) {
            return tracing::debug!(channel = %open.channel, "asked twice for the same stream");
        }
        let Some(terms) = self.terms.clone() else {
            return;
        };
        if let Some(end) = memory::refusal(&self.context) {
            return self.refuse(open.channel, end);
        }
        let limit = self.context.config.max_streams;
        let Some(stream) = self.context.streams.enter(Kind::of(&open.target), limit) else {
            let message = format!("the supervisor has {limit} streams open, as many as it may");
            let end = End::new(Origin::Supervisor, Reason::LimitStreams, message);
            return self.refuse(open.channel, end);
        };
        let lane = self.lanes.get(open.lane);
        let shard = lane.shard().clone();
        let channel = open.channel.clone();
        let context = Arc::clone(&self.context);
        let (relay, leash) = Relay::new(context, terms, lane, stream, open, self.reporter.clone());
        self.relays.insert(channel, leash);
        shard.spawn("relay", self.context.relays.track_future(relay.run()));
    }

    fn take(&mut self, report: Report) {
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

    /// We were told to stop: no new streams, and those that are open may finish for a while.
    fn leave(&mut self) {
        let grace = self.context.config.scaled(self.context.config.stop_grace);
        if self.machine.leave() {
            self.say(&FromSupervisor::Goodbye { deadline: grace });
        }
        self.context.metrics.session("draining");
        self.context.phase.send_replace(Phase::Leaving);
        tracing::info!(streams = self.relays.len(), ?grace, "leaving");
        self.leaving = Some(Instant::now() + grace);
    }

    /// The grace is over: ends what is open, and then the session although something is left.
    fn insist(&mut self) -> Result<(), Ended> {
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
    fn lose(&self, how: &Ended) {
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

    fn say(&mut self, message: &FromSupervisor) {
        self.control.sender.push(encode_supervisor(message));
        self.unflushed = true;
    }

    fn agreed(&self, capability: Capability) -> bool {
        self.machine.agreed().has(capability)
    }
}
