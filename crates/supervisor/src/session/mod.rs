//! One session: a control stream from hello to its end, and the relays that it asks for.
//!
//! One task owns it. It waits for the gateway's messages, its relays' reports and the clock, and for
//! nothing else: dialling, data connections and targets are the relays' own business, each in a task
//! of its own. When the session ends, so do they.

mod act;
mod control;
mod finale;
mod news;
mod remedy;

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate_bridge::Said;
use tidegate_lifecycle::Capability;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::id::{ChannelId, GatewayId, SessionId};
use tidegate_lifecycle::limits::{HEARTBEAT_INTERVAL, STATUS_GRACE};
use tidegate_lifecycle::redial::Ended;
use tidegate_lifecycle::session::{Hello, SupervisorSession, SupervisorState};
use tidegate_transport::{Endpoint, Shards};
use tidegate_wire::session::decode_gateway;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

pub(crate) use self::news::{News, Outlet};

use self::control::Control;
use crate::context::Context;
use crate::homes::Ready;
use crate::lanes::Lanes;
use crate::metrics::Standing;
use crate::relay::{Leash, Report, Terms};

/// How long a gateway may take to answer hello.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Reports that may wait for the session's task; more make their relays wait.
const REPORTS: usize = 1024;

/// How an attempt at a session, or the session, was over.
#[derive(Debug)]
pub(crate) enum Over {
    /// It ended.
    Ended(Ended),
    /// We ended it: we were told to stop, or another session has taken over.
    Stopped,
}

/// Where a session is opened to.
#[derive(Clone, Debug)]
pub(crate) struct Gateway {
    pub(crate) url: String,
    pub(crate) endpoint: Endpoint,
}

impl Gateway {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self {
            url: endpoint.url(),
            endpoint,
        }
    }

    /// The same at one address of its name.
    pub(crate) fn at(&self, address: SocketAddr) -> Self {
        Self {
            url: format!("{} at {}", self.url, address.ip()),
            endpoint: self.endpoint.clone().with_address(address),
        }
    }
}

/// A session that is wanted.
#[derive(Debug)]
pub(crate) struct Assignment {
    /// Where.
    pub(crate) gateway: Gateway,
    /// How many gateways sessions are wanted with.
    pub(crate) homes: u8,
    /// The session that it takes over from.
    pub(crate) replaces: Option<SessionId>,
    /// The gateways that there are sessions with.
    pub(crate) held: Vec<GatewayId>,
    /// Makes endpoints of what its gateway tells.
    pub(crate) ready: Ready,
    /// Cancelled when another session has taken over from this one.
    pub(crate) let_go: CancellationToken,
}

/// Opens a session and serves it until it is over.
pub(crate) async fn serve(
    context: &Arc<Context>,
    shards: &Arc<Shards>,
    assignment: Assignment,
    outlet: Outlet,
    stop: &CancellationToken,
) -> Over {
    let accept_by = Instant::now() + context.config.scaled(ACCEPT_TIMEOUT);
    let opening = open(context, shards, assignment, outlet, accept_by);
    match stop.run_until_cancelled(opening).await {
        Some(Ok(session)) => session.run(stop).await,
        Some(Err(how)) => Over::Ended(how),
        None => Over::Stopped,
    }
}

async fn open(
    context: &Arc<Context>,
    shards: &Arc<Shards>,
    assignment: Assignment,
    outlet: Outlet,
    by: Instant,
) -> Result<Session, Ended> {
    let late = |_| {
        let message = "the gateway did not answer in time";
        Ended::With(End::new(Origin::Gateway, Reason::TransportLost, message))
    };
    let Assignment {
        gateway,
        homes,
        replaces,
        held,
        ready,
        let_go,
    } = assignment;
    let hello = Hello {
        homes,
        replaces,
        held,
        ..Hello::new(
            context.config.sandbox.clone(),
            context.instance.clone(),
            context.offered(),
        )
    };
    let opening = Control::open(context, &gateway.endpoint, hello);
    let control = timeout_at(by, opening).await.map_err(late)??;
    let mut session = Session::new(context, shards, gateway, control, outlet, ready);
    session.let_go = let_go;
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
    /// The gateway has left more unread than is worth keeping for it.
    overrun: bool,
    terms: Option<Terms>,
    lanes: Lanes,
    relays: HashMap<ChannelId, Leash>,
    reports: mpsc::Receiver<Report>,
    reporter: mpsc::Sender<Report>,
    outlet: Outlet,
    ready: Ready,
    /// What the outlet has not taken yet.
    news: VecDeque<News>,
    standing: Option<Standing>,
    /// Cancelled when another session has taken over.
    let_go: CancellationToken,
    /// When the gateway will end what is still open, if it has said so.
    evicted: Option<Instant>,
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
    /// Some of our news was taken.
    Told,
    LetGo,
    Stop,
    GraceOver,
}

impl Session {
    fn new(
        context: &Arc<Context>,
        shards: &Arc<Shards>,
        gateway: Gateway,
        control: Control,
        outlet: Outlet,
        ready: Ready,
    ) -> Self {
        let now = Instant::now();
        let interval = context.config.scaled(HEARTBEAT_INTERVAL);
        let (reporter, reports) = mpsc::channel(REPORTS);
        Self {
            context: Arc::clone(context),
            lanes: Lanes::new(control.data_endpoint(&gateway.endpoint), Arc::clone(shards)),
            gateway: gateway.url,
            machine: SupervisorSession::new(context.offered(), interval, now.into_std()),
            control,
            unflushed: true,
            overrun: false,
            terms: None,
            relays: HashMap::new(),
            reports,
            reporter,
            outlet,
            ready,
            news: VecDeque::new(),
            standing: None,
            let_go: CancellationToken::new(),
            evicted: None,
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
            if self.overrun {
                let message = "the gateway does not read its control stream";
                let end = End::new(Origin::Gateway, Reason::TransportLost, message);
                break Some(Ended::With(end));
            }
            if self.is_done() {
                break None;
            }
        };
        self.standing = None;
        let Some(how) = how else {
            // A gateway that does not answer is not worth more than this.
            let _ = timeout_at(Instant::now() + STATUS_GRACE, self.control.finish()).await;
            return Over::Stopped;
        };
        self.lose(&how);
        self.explain(&how).await;
        // Its news comes before its end.
        while let Some(news) = self.news.pop_front() {
            self.outlet.tell(news).await;
        }
        if self.is_let_go() {
            return Over::Stopped;
        }
        Over::Ended(how)
    }

    /// Whether there is nothing left to do. A session that was replaced is ended by its gateway, which has
    /// heard then that it was, and asks for nothing more: what it asked for meanwhile gets an answer.
    fn is_done(&self) -> bool {
        let waits = self.leaving.is_none() && self.agreed(Capability::SessionDrain);
        self.is_let_go() && !waits && self.relays.is_empty() && self.news.is_empty()
    }

    /// Whether it takes no new streams, by our own decision.
    const fn is_let_go(&self) -> bool {
        match self.machine.state() {
            SupervisorState::DrainOnly | SupervisorState::Leaving => true,
            SupervisorState::AwaitAccepted | SupervisorState::Live | SupervisorState::Closed => {
                self.leaving.is_some()
            }
        }
    }

    async fn next(&mut self, stop: &CancellationToken) -> Event {
        let timer = Instant::from_std(self.machine.poll_timeout());
        let grace = self.leaving.unwrap_or(timer);
        let replaced = self.machine.state() == SupervisorState::DrainOnly;
        tokio::select! {
            _ = self.control.sender.flush(), if self.unflushed => Event::Written,
            said = self.control.receiver.next() => Event::Said(said),
            Some(report) = self.reports.recv() => Event::Report(report),
            () = self.outlet.pass(&mut self.news), if !self.news.is_empty() => Event::Told,
            () = self.let_go.cancelled(), if !replaced && self.leaving.is_none() => Event::LetGo,
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
            Event::Told => {}
            Event::LetGo => self.retire(),
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
            Said::Lost(loss) => {
                return Err(Ended::With(control::lost(loss, self.machine.agreed())));
            }
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
                self.context.metrics.ignored();
                tracing::debug!(%error, "a control message cannot be read");
            }
        }
        Ok(())
    }
}
