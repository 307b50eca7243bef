//! A gateway in this process, and peers that are written from the wire up.
#![allow(unreachable_pub, reason = "shared between the files of one binary")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use prost::Message as _;
use tidegate_directory::Directory;
use tidegate_gateway::config::{Address, GatewayName, Threads};
use tidegate_gateway::{Config, Gateway};
use tidegate_lifecycle::HalfClose;
use tidegate_lifecycle::id::{GatewayId, SandboxName};
use tidegate_testkit::messages::{
    Empty, ForwardFrame, ForwardInit, ForwardPayload, FromGateway, FromSupervisor, GatewayMessage,
    Hello, RelayFrame, RelayInit, RelayOpen, RelayOpenResult, RelayPayload, SessionAccepted,
    SupervisorMessage, TcpTarget, path,
};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{Call, Client, Inbox, Outbox, Received, Response};
use tidegate_testkit::wait::{self, GENEROUS};
use tidegate_wire::metadata;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What a supervisor of ours offers.
pub const SESSION: [&str; 6] = [
    "stream-half-close-v1",
    "stream-explicit-fin-v1",
    "relay-abort-v1",
    "frame-limit-v1",
    "session-liveness-v1",
    "session-drain-v1",
];

/// What a client of ours offers.
pub const STREAM: [&str; 4] = [
    "stream-half-close-v1",
    "stream-explicit-fin-v1",
    "relay-abort-v1",
    "frame-limit-v1",
];

/// A gateway that runs as long as this value lives.
pub struct Running {
    pub addr: SocketAddr,
    pub admin: SocketAddr,
    drain: CancellationToken,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

impl Running {
    pub async fn start(config: Config) -> Self {
        Self::serve(Gateway::bind(config).await.expect("it binds"))
    }

    /// With a directory of the test's own.
    pub async fn start_with(config: Config, directory: Arc<dyn Directory>) -> Self {
        let gateway = Gateway::bind_to(config, directory).await;
        Self::serve(gateway.expect("it binds"))
    }

    fn serve(gateway: Gateway) -> Self {
        let (addr, admin) = (
            gateway.local_addr(),
            gateway.admin_addr().expect("it is set"),
        );
        let (drain, shutdown) = (CancellationToken::new(), CancellationToken::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(gateway.run_and_drain(drain.clone(), shutdown.clone()));
        Self {
            addr,
            admin,
            drain,
            shutdown,
            tasks,
        }
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop(mut self) {
        self.shutdown.cancel();
        let stopped = self.tasks.join_next();
        let stopped = wait::within(Duration::from_secs(8), "the gateway to stop", stopped).await;
        stopped.expect("one task").expect("no panic");
    }

    /// Asks it to leave without breaking anything.
    pub fn ask_to_leave(&self) {
        self.drain.cancel();
    }

    /// Waits until it has stopped by itself.
    pub async fn gone(&mut self) {
        let gone = self.tasks.join_next();
        let gone = wait::within(GENEROUS, "the gateway to leave", gone).await;
        gone.expect("one task").expect("no panic");
    }

    /// Whether it is still there.
    pub fn is_here(&mut self) -> bool {
        self.tasks.try_join_next().is_none()
    }

    pub fn ask_to_stop(&self) {
        self.shutdown.cancel();
    }
}

/// A configuration for tests: free ports, plaintext, sure of names from the start.
pub fn config() -> Config {
    let free: Address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into();
    Config {
        listen: free.clone(),
        admin: Some(free),
        insecure_dev: true,
        threads: Threads(2),
        gateway_id: GatewayName(GatewayId::new("gw0")),
        restart_grace: Duration::ZERO,
        sandboxes: vec![name("known")],
        ..Config::default()
    }
}

pub fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).expect("a name")
}

pub fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

pub fn init(sandbox: &str) -> ForwardInit {
    ForwardInit {
        sandbox: sandbox.to_owned(),
        tcp: Some(TcpTarget {
            host: "localhost".to_owned(),
            port: 80,
        }),
        capabilities: names(&STREAM),
        ..ForwardInit::default()
    }
}

/// A client's stream, frame by frame.
pub struct Forward {
    pub outbox: Outbox,
    pub answer: Answer,
}

/// What comes back on a call, read as far as it came.
pub enum Answer {
    Waiting(Response),
    Open(HeaderMap, Inbox),
    Over(Outcome),
}

impl Forward {
    /// Opens a call and sends nothing on it.
    pub async fn silent(client: &Client) -> Self {
        let call = client
            .open(path::FORWARD_TCP, HeaderMap::new())
            .await
            .expect("it opens");
        Self {
            outbox: call.outbox,
            answer: Answer::Waiting(call.response),
        }
    }

    pub async fn open(client: &Client, init: ForwardInit) -> Self {
        let mut forward = Self::silent(client).await;
        forward.send(ForwardFrame::init(init)).await;
        forward
    }

    pub async fn send(&mut self, frame: ForwardFrame) {
        // A call that is over takes nothing, which its end tells.
        let _ = self.outbox.message(&frame).await;
    }

    /// Waits for the headers of an open path.
    pub async fn headers(&mut self) -> HeaderMap {
        self.answer.advance().await;
        match &self.answer {
            Answer::Open(headers, _) => headers.clone(),
            Answer::Over(outcome) => panic!("refused: {outcome:?}"),
            Answer::Waiting(_) => panic!("it was advanced"),
        }
    }

    /// Reads a frame.
    pub async fn next(&mut self) -> ForwardPayload {
        self.headers().await;
        let Answer::Open(_, inbox) = &mut self.answer else {
            panic!("it is open")
        };
        match wait::within(GENEROUS, "a frame", inbox.next()).await {
            Received::Message(message) => {
                let frame = ForwardFrame::decode(message).expect("a frame");
                frame.payload.expect("a payload")
            }
            other => panic!("expected a frame, got {other:?}"),
        }
    }

    /// Reads to the status.
    pub async fn outcome(self) -> Outcome {
        self.answer.outcome().await
    }
}

/// Whether they are a client's that knows what an empty message is.
fn is_followed(headers: &HeaderMap) -> bool {
    let agreed = metadata::capabilities(headers, &metadata::CAPABILITIES);
    headers.contains_key(metadata::STREAM_ID) && agreed.half_close() == HalfClose::Explicit
}

impl Answer {
    async fn advance(&mut self) {
        let Self::Waiting(_) = self else { return };
        let placeholder = Self::Over(Outcome::from(&tonic::Status::ok("")));
        let Self::Waiting(response) = std::mem::replace(self, placeholder) else {
            return;
        };
        let headers = wait::within(GENEROUS, "headers", response.headers()).await;
        let (status, headers, mut inbox) = headers.expect("an answer");
        assert_eq!(status, 200);
        let outcome = Outcome::from_headers(&headers);
        if outcome.is_none() && is_followed(&headers) {
            let first = wait::within(GENEROUS, "what follows the headers", inbox.next()).await;
            match first {
                // Nothing, or one field of no length.
                Received::Message(empty) if matches!(*empty, [] | [_, 0]) => {}
                // What had come already follows as well.
                Received::Message(message) => inbox.put_back(&message),
                other => panic!("expected a message, got {other:?}"),
            }
        }
        *self = match outcome {
            Some(outcome) => Self::Over(outcome),
            None => Self::Open(headers, inbox),
        };
    }

    /// What follows the headers of an open path.
    pub async fn inbox(&mut self) -> &mut Inbox {
        self.advance().await;
        match self {
            Self::Open(_, inbox) => inbox,
            Self::Over(outcome) => panic!("refused: {outcome:?}"),
            Self::Waiting(_) => panic!("it was advanced"),
        }
    }

    /// The status of an answer that has nothing else.
    pub async fn refused(&mut self) -> Option<&Outcome> {
        self.advance().await;
        match self {
            Self::Over(outcome) => Some(outcome),
            Self::Open(..) | Self::Waiting(_) => None,
        }
    }

    /// The headers of an open path, which were read.
    pub fn headers(&self) -> &HeaderMap {
        match self {
            Self::Open(headers, _) => headers,
            Self::Over(_) | Self::Waiting(_) => panic!("it is not open"),
        }
    }

    pub async fn outcome(mut self) -> Outcome {
        self.advance().await;
        match self {
            Self::Over(outcome) => outcome,
            Self::Open(_, mut inbox) => status(&mut inbox).await,
            Self::Waiting(_) => panic!("it was advanced"),
        }
    }
}

/// A control stream, message by message.
pub struct Supervisor {
    sandbox: String,
    pub client: Client,
    pub outbox: Outbox,
    pub inbox: Inbox,
    pub accepted: SessionAccepted,
    pub headers: HeaderMap,
}

pub fn hello(sandbox: &str) -> Hello {
    Hello {
        sandbox_id: sandbox.to_owned(),
        instance_id: "raw".to_owned(),
        capabilities: names(&SESSION),
        ..Hello::default()
    }
}

/// Opens a control stream and says these things at once.
pub async fn control(client: &Client, said: Vec<FromSupervisor>) -> Call {
    let open = client.open(path::CONNECT_SUPERVISOR, HeaderMap::new());
    let mut call = open.await.expect("it opens");
    for one in said {
        call.outbox
            .message(&SupervisorMessage::from(one))
            .await
            .expect("it is sent");
    }
    call
}

impl Supervisor {
    pub async fn connect(addr: SocketAddr, sandbox: &str) -> Self {
        Self::greet(addr, hello(sandbox)).await
    }

    pub async fn greet(addr: SocketAddr, hello: Hello) -> Self {
        let client = Client::connect(addr).await.expect("it connects");
        let sandbox = hello.sandbox_id.clone();
        let call = control(&client, vec![FromSupervisor::Hello(hello)]).await;
        let headers = wait::within(GENEROUS, "an answer", call.response.headers()).await;
        let (_, headers, mut inbox) = headers.expect("headers");
        let FromGateway::SessionAccepted(accepted) = read(&mut inbox).await else {
            panic!("not accepted: {headers:?}")
        };
        Self {
            sandbox,
            client,
            outbox: call.outbox,
            inbox,
            accepted,
            headers,
        }
    }

    pub async fn say(&mut self, said: FromSupervisor) {
        self.outbox
            .message(&SupervisorMessage::from(said))
            .await
            .expect("it is sent");
    }

    /// The next message that is no heartbeat.
    pub async fn next(&mut self) -> FromGateway {
        loop {
            match read(&mut self.inbox).await {
                FromGateway::Heartbeat(_) => {}
                other => return other,
            }
        }
    }

    pub async fn asked(&mut self) -> RelayOpen {
        match self.next().await {
            FromGateway::RelayOpen(open) => open,
            other => panic!("expected a request for a relay, got {other:?}"),
        }
    }

    pub async fn answer(&mut self, channel: &str, error: Option<&str>) {
        let result = RelayOpenResult {
            channel_id: channel.to_owned(),
            success: error.is_none(),
            error: error.unwrap_or_default().to_owned(),
            cause: None,
        };
        self.say(FromSupervisor::RelayOpenResult(result)).await;
    }

    /// The claim of a relay as this supervisor makes it.
    pub fn relay_init(&self, channel: &str) -> RelayInit {
        RelayInit {
            channel_id: channel.to_owned(),
            capabilities: names(&STREAM),
            session_id: self.accepted.session_id.clone(),
        }
    }

    pub async fn claim(&self, init: RelayInit) -> Relay {
        Relay::claim(&self.client, init).await
    }

    /// Takes the next request and claims it.
    pub async fn serve(&mut self) -> Relay {
        let open = self.asked().await;
        self.answer(&open.channel_id, None).await;
        self.claim(self.relay_init(&open.channel_id)).await
    }

    /// The status with which the session ends. Its connection stays.
    pub async fn outcome(&mut self) -> Outcome {
        status(&mut self.inbox).await
    }

    /// Shows that the session works, and that nothing was said on it meanwhile.
    pub async fn is_alive(&mut self, addr: SocketAddr) {
        let client = Client::connect(addr).await.expect("it connects");
        let forward = Forward::open(&client, init(&self.sandbox)).await;
        let open = self.asked().await;
        self.answer(&open.channel_id, Some("proof of life")).await;
        let outcome = forward.outcome().await;
        assert_eq!(
            (outcome.reason.as_str(), outcome.message.as_str()),
            ("TARGET_UNREACHABLE", "proof of life")
        );
    }
}

/// One RelayStream.
pub struct Relay {
    pub outbox: Outbox,
    pub answer: Answer,
}

impl Relay {
    pub async fn claim(client: &Client, init: RelayInit) -> Self {
        let call = client
            .open(path::RELAY_STREAM, HeaderMap::new())
            .await
            .expect("it opens");
        let mut relay = Self {
            outbox: call.outbox,
            answer: Answer::Waiting(call.response),
        };
        relay.send(RelayFrame::init(init)).await;
        relay
    }

    pub async fn send(&mut self, frame: RelayFrame) {
        let _ = self.outbox.message(&frame).await;
    }

    pub async fn headers(&mut self) -> HeaderMap {
        self.answer.advance().await;
        match &self.answer {
            Answer::Open(headers, _) => headers.clone(),
            Answer::Over(outcome) => panic!("refused: {outcome:?}"),
            Answer::Waiting(_) => panic!("it was advanced"),
        }
    }

    pub async fn next(&mut self) -> RelayPayload {
        self.headers().await;
        let Answer::Open(_, inbox) = &mut self.answer else {
            panic!("it is open")
        };
        match wait::within(GENEROUS, "a frame", inbox.next()).await {
            Received::Message(message) => RelayFrame::decode(message)
                .expect("a frame")
                .payload
                .expect("a payload"),
            other => panic!("expected a frame, got {other:?}"),
        }
    }
}

/// Reads to the end, which must be a status.
async fn status(inbox: &mut Inbox) -> Outcome {
    match wait::within(GENEROUS, "an end", inbox.rest()).await {
        (_, Received::Trailers(trailers)) => Outcome::from_headers(&trailers).expect("a status"),
        (_, other) => panic!("expected a status, got {other:?}"),
    }
}

async fn read(inbox: &mut Inbox) -> FromGateway {
    match wait::within(GENEROUS, "a message", inbox.next()).await {
        Received::Message(message) => GatewayMessage::decode(message)
            .expect("a message")
            .payload
            .expect("a payload"),
        other => panic!("expected a message, got {other:?}"),
    }
}

/// An open path: a client's stream and the relay it arrives on.
pub async fn path(client: &Client, supervisor: &mut Supervisor, sandbox: &str) -> (Forward, Relay) {
    let mut forward = Forward::open(client, init(sandbox)).await;
    let mut relay = supervisor.serve().await;
    relay.headers().await;
    forward.headers().await;
    (forward, relay)
}

/// Shows that a path works both ways.
pub async fn works(forward: &mut Forward, relay: &mut Relay) {
    forward.send(ForwardFrame::data("ping")).await;
    assert_eq!(relay.next().await, RelayPayload::Data(Bytes::from("ping")));
    relay.send(RelayFrame::data("pong")).await;
    assert_eq!(
        forward.next().await,
        ForwardPayload::Data(Bytes::from("pong"))
    );
}

/// Ends a path cleanly from both sides.
pub async fn finishes(mut forward: Forward, mut relay: Relay) {
    forward.send(ForwardFrame::half_close()).await;
    forward.outbox.finish().expect("it ends");
    assert_eq!(relay.next().await, RelayPayload::HalfClose(Empty {}));
    relay.send(RelayFrame::half_close()).await;
    assert_eq!(forward.next().await, ForwardPayload::HalfClose(Empty {}));
    relay.outbox.finish().expect("it ends");
    assert!(forward.outcome().await.is_ok());
    assert!(relay.answer.outcome().await.is_ok());
}

pub fn is(outcome: &Outcome, code: tonic::Code, reason: &str) {
    assert_eq!(
        (outcome.code, outcome.reason.as_str()),
        (code, reason),
        "{outcome:?}"
    );
}
