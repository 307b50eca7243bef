//! A released supervisor: one session, one connection for control and relays alike.

mod relay;

use std::{net::SocketAddr, time::Duration};

use prost::Message;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{MissedTickBehavior, interval},
};
use tonic::{Status, Streaming, transport::Channel};

use super::{Dialect, rpc};
use crate::{
    background::Background,
    messages::{
        ConfigUpdate, Empty, FromGateway, FromSupervisor, GatewayMessage, HALF_CLOSE, Hello,
        RelayClose, RelayOpen, SessionAccepted, SupervisorMessage, path,
    },
    outcome::Outcome,
    wait::{self, GENEROUS},
};

/// The shortest interval at which released supervisors send heartbeats.
const SHORTEST: Duration = Duration::from_secs(5);

/// The first and the longest pause before released supervisors dial again.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// When heartbeats are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heartbeats {
    /// At the interval the gateway offers, but not more often than every 5 s.
    #[default]
    Released,
    /// At this interval.
    Every(Duration),
    /// Never.
    Never,
}

/// How the supervisor behaves.
#[derive(Clone, Debug)]
pub struct SupervisorOptions {
    /// Where the gateway listens, in plaintext.
    pub gateway: SocketAddr,
    /// The sandbox it speaks for.
    pub sandbox: String,
    /// Its name for itself.
    pub instance: String,
    /// Its bearer token.
    pub token: Option<String>,
    /// What it speaks.
    pub dialect: Dialect,
    /// When it sends heartbeats.
    pub heartbeats: Heartbeats,
    /// Whether it dials again when the session ends.
    pub redial: bool,
}

impl SupervisorOptions {
    /// An old supervisor of `sandbox` that does not dial again.
    pub fn new(gateway: SocketAddr, sandbox: &str) -> Self {
        Self {
            gateway,
            sandbox: sandbox.to_owned(),
            instance: "legacy-supervisor".to_owned(),
            token: None,
            dialect: Dialect::Old,
            heartbeats: Heartbeats::Released,
            redial: false,
        }
    }

    fn hello(&self, epoch: u64) -> Hello {
        let hello = Hello {
            sandbox_id: self.sandbox.clone(),
            instance_id: self.instance.clone(),
            ..Hello::default()
        };
        match self.dialect {
            Dialect::Old => hello,
            Dialect::New => Hello {
                connection_epoch: epoch,
                supports_provider_readiness: true,
                supports_session_redirect: true,
                supports_config_push: true,
                ..hello
            },
            Dialect::Proposed => Hello {
                proposed_capabilities: vec![HALF_CLOSE.to_owned()],
                ..hello
            },
        }
    }

    fn beat(&self, accepted: &SessionAccepted) -> Option<Duration> {
        match self.heartbeats {
            Heartbeats::Released => Some(offered(accepted).max(SHORTEST)),
            Heartbeats::Every(interval) => Some(interval),
            Heartbeats::Never => None,
        }
    }
}

/// What the supervisor has met.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The session is open.
    Accepted(SessionAccepted),
    /// The session was refused, with this text.
    Rejected(String),
    /// The gateway is alive.
    Heartbeat,
    /// A relay is wanted.
    Open(RelayOpen),
    /// A relay is over; released supervisors only log it.
    Close(RelayClose),
    /// A message without a payload this dialect knows.
    Unknown,
    /// A relay's call is over.
    RelayEnded {
        /// Which one.
        channel: String,
        /// Its status; OK if it ran to its end.
        outcome: Outcome,
    },
    /// The session, or the attempt at one, is over.
    SessionEnded(Outcome),
}

/// A supervisor on its own thread; dropping it closes its connection.
#[derive(Debug)]
pub struct Supervisor {
    events: watch::Receiver<Vec<Event>>,
    _thread: Background,
}

impl Supervisor {
    /// Starts to dial.
    ///
    /// # Errors
    ///
    /// If there is no thread to be had.
    pub fn start(options: SupervisorOptions) -> std::io::Result<Self> {
        let (events, seen) = watch::channel(Vec::new());
        let thread = Background::start("legacy-supervisor", move || run(options, events))?;
        Ok(Self {
            events: seen,
            _thread: thread,
        })
    }

    /// Returns all it has met.
    pub fn events(&self) -> Vec<Event> {
        self.events.borrow().clone()
    }

    /// Waits until its session is open.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn accepted(&self) -> SessionAccepted {
        self.event("a session", |event| match event {
            Event::Accepted(accepted) => Some(accepted.clone()),
            _ => None,
        })
        .await
    }

    /// Waits until one of its sessions, or of its attempts, has ended.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn session_ended(&self) -> Outcome {
        self.event("the end of the session", |event| match event {
            Event::SessionEnded(outcome) => Some(outcome.clone()),
            _ => None,
        })
        .await
    }

    /// Waits for the first event, past ones included, in which `find` finds something.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn event<T>(&self, what: &str, find: impl Fn(&Event) -> Option<T>) -> T {
        let mut events = self.events.clone();
        let found = events.wait_for(|events| events.iter().any(|event| find(event).is_some()));
        let found = wait::within(GENEROUS, what, found).await;
        let found = found.expect("the supervisor's thread lives as long as `self`");
        found
            .iter()
            .find_map(find)
            .expect("it was there a moment ago")
    }
}

async fn run(options: SupervisorOptions, events: watch::Sender<Vec<Event>>) {
    let mut pause = FIRST_PAUSE;
    for epoch in 1.. {
        let outcome = match session(&options, epoch, &events).await {
            Ok(()) => Outcome::from(&Status::ok("")),
            Err(status) => Outcome::from(&status),
        };
        push(&events, Event::SessionEnded(outcome));
        if !options.redial {
            break;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    std::future::pending::<()>().await; // what was seen stays to be looked at
}

async fn session(
    options: &SupervisorOptions,
    epoch: u64,
    events: &watch::Sender<Vec<Event>>,
) -> Result<(), Status> {
    let channel = rpc::connect(options.gateway).await;
    let channel = channel.map_err(|error| Status::from_error(error.into()))?;
    let (to_gateway, queue) = mpsc::channel(rpc::QUEUE);
    let hello = SupervisorMessage::from(FromSupervisor::Hello(options.hello(epoch)));
    to_gateway.try_send(hello).expect("an empty queue has room");
    let token = options.token.as_deref();
    let opened = rpc::open(&channel, path::CONNECT_SUPERVISOR, queue, token).await?;
    let mut from_gateway: Streaming<GatewayMessage> = opened.into_inner();
    let accepted = match from_gateway
        .message()
        .await?
        .and_then(|message| message.payload)
    {
        Some(FromGateway::SessionAccepted(accepted)) => accepted,
        Some(FromGateway::SessionRejected(rejected)) => {
            push(events, Event::Rejected(rejected.reason.clone()));
            return Err(Status::failed_precondition(rejected.reason));
        }
        other => return Err(Status::internal(format!("no answer to hello: {other:?}"))),
    };
    let live = Live::new(options, channel, to_gateway, &accepted, events)?;
    push(events, Event::Accepted(accepted.clone()));
    live.run(from_gateway, options.beat(&accepted)).await
}

/// An open session.
struct Live<'a> {
    relay: relay::Context,
    events: &'a watch::Sender<Vec<Event>>,
}

impl<'a> Live<'a> {
    fn new(
        options: &SupervisorOptions,
        channel: Channel,
        to_gateway: mpsc::Sender<SupervisorMessage>,
        accepted: &SessionAccepted,
        events: &'a watch::Sender<Vec<Event>>,
    ) -> Result<Self, Status> {
        let half_close = agreed(options.dialect, accepted)?;
        let (session, token) = (accepted.session_id.clone(), options.token.clone());
        let relay = relay::Context {
            channel,
            to_gateway,
            session,
            token,
            half_close,
        };
        Ok(Self { relay, events })
    }

    async fn run(
        &self,
        mut from_gateway: Streaming<GatewayMessage>,
        beat: Option<Duration>,
    ) -> Result<(), Status> {
        let mut relays = JoinSet::new();
        let mut heartbeats = interval(beat.unwrap_or(LONGEST_PAUSE));
        heartbeats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = from_gateway.message() => match message? {
                    Some(message) => self.handle(message, &mut relays),
                    None => return Ok(()),
                },
                _ = heartbeats.tick(), if beat.is_some() => {
                    let heartbeat = FromSupervisor::Heartbeat(Empty {}).into();
                    let _ = self.relay.to_gateway.send(heartbeat).await; // its end is told above
                }
                Some(ended) = relays.join_next() => {
                    let (channel, outcome) = ended.expect("a relay does not panic");
                    push(self.events, Event::RelayEnded { channel, outcome });
                }
            }
        }
    }

    fn handle(&self, message: GatewayMessage, relays: &mut JoinSet<(String, Outcome)>) {
        let event = match message.payload {
            Some(FromGateway::RelayOpen(open)) => {
                let (context, wanted) = (self.relay.clone(), open.clone());
                relays.spawn(async move { relay::serve(context, wanted).await });
                Event::Open(open)
            }
            Some(FromGateway::Heartbeat(_)) => Event::Heartbeat,
            Some(FromGateway::RelayClose(close)) => Event::Close(close),
            Some(FromGateway::SessionRejected(rejected)) => Event::Rejected(rejected.reason),
            Some(FromGateway::SessionAccepted(_) | FromGateway::SessionDrain(_)) | None => {
                Event::Unknown
            }
        };
        push(self.events, event);
    }
}

/// Whether FIN frames are agreed on. Reads field 3 as the dialect does, and fails where that does.
fn agreed(dialect: Dialect, accepted: &SessionAccepted) -> Result<bool, Status> {
    let field = &accepted.proposed_capabilities;
    match dialect {
        Dialect::Old => Ok(false),
        Dialect::New => {
            let decoded: Result<Vec<_>, _> = field
                .iter()
                .map(|update| ConfigUpdate::decode(update.as_slice()))
                .collect();
            decoded
                .map(|_| false)
                .map_err(|error| Status::internal(error.to_string()))
        }
        Dialect::Proposed => Ok(field
            .iter()
            .any(|capability| capability == HALF_CLOSE.as_bytes())),
    }
}

fn offered(accepted: &SessionAccepted) -> Duration {
    let new = accepted
        .heartbeat_interval
        .and_then(|interval| interval.try_into().ok());
    new.unwrap_or_else(|| Duration::from_secs(accepted.heartbeat_interval_secs.into()))
}

fn push(events: &watch::Sender<Vec<Event>>, event: Event) {
    events.send_modify(|events| events.push(event));
}
