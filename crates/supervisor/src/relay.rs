//! One stream, from the gateway's request for it to its end.
//!
//! ```text
//!  RelayOpen ─▶ dial the target ─▶ RelayOpenResult ─▶ claim: RelayStream(init) ─▶ tunnel ─▶ end
//! ```
//!
//! For a command there is nothing to dial: what to run comes on the stream itself.
//!
//! It runs on the thread of its lane and tells the session what to say on the control stream.
//! `RelayClose` from the gateway ends it at every step.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tidegate_bridge::{
    Cargo, End as TunnelEnd, ExecEnd, FrameEnd, Handle, Machine, Outcome, Plug, RpcEnd, RpcKind,
    SocketEnd, Tunnel,
};
use tidegate_lifecycle::cause::{Cause, End, Origin, Reason};
use tidegate_lifecycle::exec::{Execution, Hop};
use tidegate_lifecycle::id::{ChannelId, SessionId};
use tidegate_lifecycle::leg::{Leg, Orientation};
use tidegate_lifecycle::relay::{Rank, Relay as ByteMachine, Side};
use tidegate_lifecycle::session::RelayOpen;
use tidegate_lifecycle::{Capabilities, Capability, Target};
use tidegate_transport::{ResponseHead, SendHalf};
use tidegate_wire::frame::RelayInit;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::exec::{Commands, Stop};
use crate::lanes::Lane;
use crate::streams::{Kind, Stream};

/// What a relay has to tell its session.
#[derive(Debug)]
pub(crate) enum Report {
    /// How the connection attempt went.
    Dialled(ChannelId, Result<(), End>),
    /// It has ended; the end is for the gateway to know, if there is one.
    Ended(ChannelId, Option<End>),
}

/// How its session ends a relay.
#[derive(Debug)]
pub(crate) struct Leash {
    cancel: Cancel,
    handle: Handle,
    stop: Stop,
}

/// Ends a relay that is no tunnel yet, and says why.
#[derive(Clone, Debug, Default)]
struct Cancel {
    token: CancellationToken,
    why: Arc<OnceLock<Cause>>,
}

impl Cancel {
    fn because(&self, why: Cause) {
        self.why.get_or_init(|| why);
        self.token.cancel();
    }
}

impl Leash {
    /// The gateway ended the relay, or was lost: stops at whichever step it is. A command that an
    /// operator closes has time for its exit, which is a result and not an error.
    pub(crate) fn told(&self, end: End) {
        if end.reason == Reason::OperatorClosed && self.stop.ask() {
            return;
        }
        let why = end.cause();
        self.handle.told(Side::Downstream, Rank::Typed, end);
        self.cancel.because(why);
    }

    /// Ends it by our own decision.
    pub(crate) fn close(&self, end: End) {
        let why = end.cause();
        self.handle.close(end);
        self.cancel.because(why);
    }
}

/// What one session agreed on, for its relays.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) session: SessionId,
    pub(crate) agreed: Capabilities,
}

/// What a stream leads to.
enum Way {
    /// A connected target.
    Target(Plug),
    /// Whoever runs commands.
    Commands(Commands),
}

/// A RelayStream of ours that is not answered yet.
type Call = (SendHalf, ResponseHead);

/// One stream that the gateway asked for.
#[derive(Debug)]
pub(crate) struct Relay {
    context: Arc<Context>,
    terms: Terms,
    lane: Lane,
    stream: Stream,
    channel: ChannelId,
    target: Target,
    dial_timeout: Option<Duration>,
    cancel: Cancel,
    stop: Stop,
    reports: mpsc::Sender<Report>,
}

impl Relay {
    /// Takes the request `open` on, and returns what ends it with it.
    pub(crate) fn new(
        context: Arc<Context>,
        terms: Terms,
        lane: Lane,
        stream: Stream,
        open: RelayOpen,
        reports: mpsc::Sender<Report>,
    ) -> (Self, Leash) {
        let (cancel, stop) = (Cancel::default(), Stop::default());
        let leash = Leash {
            cancel: cancel.clone(),
            handle: stream.handle().clone(),
            stop: stop.clone(),
        };
        let relay = Self {
            context,
            terms,
            lane,
            stream,
            channel: open.channel,
            target: open.target,
            dial_timeout: open.dial_timeout,
            cancel,
            stop,
            reports,
        };
        (relay, leash)
    }

    /// Serves the stream until nothing of it is left.
    pub(crate) async fn run(self) {
        let begun = Instant::now();
        let way = match self.unless_cancelled(self.reach()).await {
            Some(Ok(way)) => way,
            Some(Err(end)) => return self.refuse(end).await,
            None => {
                self.never_opened(self.why());
                return self.report(Report::Ended(self.channel.clone(), None)).await;
            }
        };
        self.context
            .metrics
            .opened(self.stream.kind(), begun.elapsed());
        self.report(Report::Dialled(self.channel.clone(), Ok(())))
            .await;
        match self.unless_cancelled(self.claim()).await {
            Some(Ok(call)) => match way {
                Way::Target(plug) => self.connect(plug, call).await,
                Way::Commands(commands) => self.execute(commands, call).await,
            },
            Some(Err(end)) => self.give_up(end).await,
            None => {
                self.count(self.why());
                self.report(Report::Ended(self.channel.clone(), None)).await;
            }
        }
    }

    async fn reach(&self) -> Result<Way, End> {
        match (&self.target, &self.context.commands) {
            (Target::Exec, Some(commands)) => Ok(Way::Commands(commands.clone())),
            (Target::Exec, None) | (Target::Tcp { .. } | Target::Ssh, _) => {
                let dialer = &self.context.dialer;
                let dialled = dialer.dial(&self.target, self.dial_timeout).await;
                dialled.map(Way::Target)
            }
        }
    }

    async fn claim(&self) -> Result<Call, End> {
        let headers = self.context.metadata().await?;
        self.lane.open(headers).await.map_err(|error| {
            let message = format!("no connection to the gateway for the stream's data: {error}");
            End::new(Origin::Supervisor, Reason::TransportLost, message)
        })
    }

    /// Carries bytes between the gateway and a target.
    async fn connect(self, plug: Plug, call: Call) {
        let now = Instant::now();
        let agreed = self.terms.agreed.intersect(Capabilities::STREAM);
        let downstream: FrameEnd = self.answer(call, agreed);
        let upstream = SocketEnd::new(Side::Upstream, plug, &self.context.buffered);
        let machine = ByteMachine::new(
            Leg::opener(Orientation::Backward, Some(agreed.half_close())),
            Leg::socket(),
            self.context.config.stream_limits(),
            Origin::Supervisor,
            self.context.hop.clone(),
            now,
        );
        let handle = self.stream.handle().clone();
        self.carry(Tunnel::new(downstream, upstream, machine, handle, now))
            .await;
    }

    /// Carries what a command is told and tells. When either is over, so is the other.
    async fn execute(self, commands: Commands, call: Call) {
        let now = Instant::now();
        let agreed = self.terms.agreed.intersect(Capabilities::EXEC);
        let downstream: ExecEnd = self.answer(call, agreed);
        let Context { buffered, hop, .. } = &*self.context;
        let (upstream, job) = commands.job(self.stop.clone(), hop.clone(), buffered);
        let machine = Execution::new(
            Hop::opener(Orientation::Backward, Some(agreed)),
            Hop::local(),
            self.context.config.stream_limits(),
            Origin::Supervisor,
            hop.clone(),
            now,
        );
        let handle = self.stream.handle().clone();
        let tunnel = Tunnel::new(downstream, upstream, machine, handle, now);
        tokio::join!(job.run(), self.carry(tunnel));
    }

    /// Our side of the RelayStream, whose init is on its way.
    fn answer<I: Cargo>(&self, (send, head): Call, agreed: Capabilities) -> RpcEnd<I> {
        let knows_us = agreed != Capabilities::NONE;
        let init = RelayInit {
            channel: self.channel.clone(),
            session: knows_us.then(|| self.terms.session.clone()),
            capabilities: agreed,
        };
        let kind = RpcKind::RelayClient {
            liveness: self.terms.agreed.has(Capability::SessionLiveness),
        };
        let (init, total) = (init.encode(), &self.context.buffered);
        RpcEnd::opened(kind, send, head, init, Some(agreed), total)
    }

    async fn carry<I, D, U, M>(self, mut tunnel: Tunnel<D, U, M>)
    where
        I: Cargo,
        D: TunnelEnd<Item = I>,
        U: TunnelEnd<Item = I>,
        M: Machine<Item = I>,
    {
        let outcome = tunnel.run().await;
        self.ended(&outcome);
        let close = outcome.end.as_deref().filter(|_| !self.is_told(&outcome));
        let close = close.map(|end| end.seen_from_afar().via(&self.context.hop));
        self.report(Report::Ended(self.channel.clone(), close))
            .await;
        let Self { stream, .. } = self;
        tunnel.linger().await;
        drop(stream);
    }

    /// Whether the gateway knows of the end: by its own doing, or because a command that did not
    /// start was answered with the reason.
    fn is_told(&self, outcome: &Outcome) -> bool {
        let own_fault = |end: &Arc<End>| end.reason == Reason::InternalError;
        match outcome.ended_by {
            Some(Side::Downstream) => true,
            Some(Side::Upstream) => {
                let is_command = self.stream.kind() == Kind::Exec;
                is_command && !outcome.end.as_ref().is_some_and(own_fault)
            }
            None => false,
        }
    }

    /// The target could not be connected.
    async fn refuse(self, end: End) {
        self.never_opened(end.cause());
        tracing::debug!(channel = %self.channel, target = %self.target, %end, "stream refused");
        let end = end.via(&self.context.hop).on(self.channel.clone());
        self.report(Report::Dialled(self.channel.clone(), Err(end)))
            .await;
    }

    /// The target is connected and the gateway cannot be reached with it.
    async fn give_up(self, end: End) {
        self.count(end.cause());
        tracing::debug!(channel = %self.channel, target = %self.target, %end, "stream not claimed");
        let end = end.via(&self.context.hop);
        self.report(Report::Ended(self.channel.clone(), Some(end)))
            .await;
    }

    fn ended(&self, outcome: &Outcome) {
        let cause = outcome.cause();
        self.count(cause);
        tracing::debug!(
            channel = %self.channel,
            target = %self.target,
            reason = cause.reason_word(),
            bytes_up = outcome.bytes_up,
            bytes_down = outcome.bytes_down,
            duration = ?outcome.duration,
            "stream ended"
        );
    }

    fn count(&self, cause: Cause) {
        self.context.metrics.ended(self.stream.kind(), cause);
    }

    fn never_opened(&self, cause: Cause) {
        let kind = self.stream.kind();
        self.context.metrics.never_opened(kind, cause);
    }

    /// Why the relay was cancelled.
    fn why(&self) -> Cause {
        let told = self.cancel.why.get().copied();
        told.unwrap_or(Cause::Reset {
            origin: Origin::Supervisor,
            reason: Reason::InternalError,
        })
    }

    /// Waits while the session has much to do: that slows this relay and no other. A session that is
    /// gone needs to know nothing.
    async fn report(&self, report: Report) {
        let _ = self.reports.send(report).await;
    }

    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.cancel.token.run_until_cancelled(work).await
    }
}
