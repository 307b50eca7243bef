//! A gateway with all of Tidegate's capabilities, driven message by message.

use std::net::SocketAddr;
use std::time::Duration;

use http::HeaderMap;
use prost::Message;
use tidegate_lifecycle::id::ChannelId;
use tidegate_lifecycle::{Target, session};
use tidegate_testkit::messages::{
    Empty, FromGateway, FromSupervisor, GatewayMessage, Hello, RelayFrame, RelayInit, RelayOpen,
    RelayPayload, SessionAccepted, SessionDrain, SupervisorMessage, TcpTarget, path,
};
use tidegate_testkit::raw_h2::{Connection, Inbox, Outbox, Received, Server};
use tidegate_testkit::wait::{GENEROUS, within};
use tidegate_wire::session::encode_gateway;
use tonic::Code;

pub(crate) const CAPABILITIES: [&str; 6] = [
    "stream-half-close-v1",
    "stream-explicit-fin-v1",
    "relay-abort-v1",
    "frame-limit-v1",
    "session-liveness-v1",
    "session-drain-v1",
];

pub(crate) struct Gateway {
    server: Server,
}

/// A control stream whose hello was heard and not answered.
pub(crate) struct Control {
    pub(crate) hello: Hello,
    pub(crate) metadata: HeaderMap,
    connection: Connection,
    outbox: Outbox,
    inbox: Inbox,
}

/// A claimed relay.
pub(crate) struct Relay {
    pub(crate) init: RelayInit,
    pub(crate) metadata: HeaderMap,
    pub(crate) outbox: Outbox,
    pub(crate) inbox: Inbox,
}

impl Gateway {
    pub(crate) async fn start() -> Self {
        Self::start_with_limit(1000).await
    }

    /// With at most `streams` on each connection.
    pub(crate) async fn start_with_limit(streams: u32) -> Self {
        let mut settings = h2::server::Builder::new();
        settings
            .max_concurrent_streams(streams)
            .initial_connection_window_size(1 << 30);
        Self {
            server: Server::bind_with(settings).await.unwrap(),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address().unwrap()
    }

    /// Waits for hello.
    pub(crate) async fn hello(&self) -> Control {
        let mut connection = self.server.accept().await.unwrap();
        let call = connection.call().await;
        assert_eq!(call.path(), path::CONNECT_SUPERVISOR);
        let metadata = call.head.headers.clone();
        let (outbox, inbox) = call.accept(HeaderMap::new()).unwrap();
        let hello = Hello::default();
        let mut control = Control {
            hello,
            metadata,
            connection,
            outbox,
            inbox,
        };
        control.hello = match control.heard().await {
            FromSupervisor::Hello(hello) => hello,
            other => panic!("{other:?} in place of hello"),
        };
        control
    }

    /// Waits for hello and accepts it.
    pub(crate) async fn session(&self) -> Control {
        self.session_with(Duration::from_secs(15)).await
    }

    pub(crate) async fn session_with(&self, heartbeat: Duration) -> Control {
        self.session_of(heartbeat, &CAPABILITIES).await
    }

    /// Accepts a hello with these capabilities.
    pub(crate) async fn session_of(&self, heartbeat: Duration, capabilities: &[&str]) -> Control {
        let mut control = self.hello().await;
        let accepted = SessionAccepted {
            session_id: "session-1".into(),
            heartbeat_interval: Some(heartbeat.try_into().unwrap()),
            capabilities: capabilities.iter().copied().map(String::from).collect(),
            ..SessionAccepted::default()
        };
        control.say(FromGateway::SessionAccepted(accepted)).await;
        control
    }

    /// Waits for hello and accepts it as the gateway of this name, whose session is called the same.
    pub(crate) async fn session_at(&self, name: &str) -> Control {
        let mut control = self.hello().await;
        control.accept_as(name).await;
        control
    }

    /// Waits for the next data connection.
    pub(crate) async fn data(&self) -> Connection {
        self.server.accept().await.unwrap()
    }
}

impl Control {
    /// Accepts the hello as the gateway of this name, whose session is called the same.
    pub(crate) async fn accept_as(&mut self, name: &str) {
        self.accept_with(name, "").await;
    }

    /// The same, as one that says where it is itself.
    pub(crate) async fn accept_with(&mut self, name: &str, public_url: &str) {
        let accepted = SessionAccepted {
            session_id: name.into(),
            gateway_id: name.into(),
            public_url: public_url.into(),
            heartbeat_interval: Some(Duration::from_secs(15).try_into().unwrap()),
            capabilities: CAPABILITIES.map(String::from).into(),
            ..SessionAccepted::default()
        };
        self.say(FromGateway::SessionAccepted(accepted)).await;
    }

    /// Asks for a session elsewhere.
    pub(crate) async fn ask_to_move(&mut self, alternatives: &[String]) {
        self.say(FromGateway::SessionDrain(SessionDrain {
            deadline: Some(Duration::from_secs(300).try_into().unwrap()),
            alternatives: alternatives.to_vec(),
        }))
        .await;
    }

    pub(crate) async fn say(&mut self, message: FromGateway) {
        self.outbox
            .message(&GatewayMessage::from(message))
            .await
            .unwrap();
    }

    /// Says something to a supervisor that may have gone, and whether it was there.
    pub(crate) async fn offer(&mut self, message: FromGateway) -> bool {
        let message = GatewayMessage::from(message);
        self.outbox.message(&message).await.is_ok()
    }

    pub(crate) async fn beat(&mut self) {
        self.say(FromGateway::Heartbeat(Empty {})).await;
    }

    /// Asks for a relay to a port of 127.0.0.1.
    pub(crate) async fn ask(&mut self, channel: &str, port: u16) {
        self.ask_for(channel, "127.0.0.1", port, 0).await;
    }

    pub(crate) async fn ask_for(&mut self, channel: &str, host: &str, port: u16, lane: u32) {
        self.say(FromGateway::RelayOpen(RelayOpen {
            channel_id: channel.into(),
            tcp: Some(TcpTarget {
                host: host.into(),
                port: port.into(),
            }),
            lane,
            ..RelayOpen::default()
        }))
        .await;
    }

    /// Asks for a relay to whoever runs commands.
    pub(crate) async fn ask_for_command(&mut self, channel: &str) {
        let open = session::RelayOpen {
            channel: ChannelId::new(channel),
            target: Target::Exec,
            dial_timeout: None,
            lane: 0,
        };
        let message = encode_gateway(&session::FromGateway::RelayOpen(open));
        self.outbox.send(message).await.unwrap();
    }

    /// The next thing the supervisor says, heartbeats apart.
    pub(crate) async fn heard(&mut self) -> FromSupervisor {
        loop {
            match self.heard_or_end().await {
                Ok(FromSupervisor::Heartbeat(_)) => {}
                Ok(message) => return message,
                Err(end) => panic!("{end:?} in place of a message"),
            }
        }
    }

    pub(crate) async fn heard_or_end(&mut self) -> Result<FromSupervisor, Received> {
        match within(GENEROUS, "a control message", self.inbox.next()).await {
            Received::Message(message) => {
                Ok(SupervisorMessage::decode(message).unwrap().payload.unwrap())
            }
            end => Err(end),
        }
    }

    /// Whether the supervisor is asked for `channel` and says that its target is connected.
    pub(crate) async fn dialled(
        &mut self,
        channel: &str,
    ) -> Result<(), tidegate_testkit::messages::Cause> {
        match self.heard().await {
            FromSupervisor::RelayOpenResult(result) if result.channel_id == channel => {
                match result.success {
                    true => Ok(()),
                    false => Err(result.cause.unwrap()),
                }
            }
            other => panic!("{other:?} in place of the result of {channel}"),
        }
    }

    pub(crate) fn end(&mut self, code: Code) {
        self.outbox.status(code).unwrap();
    }

    pub(crate) fn end_with(&mut self, trailers: HeaderMap) {
        self.outbox.trailers(trailers).unwrap();
    }

    /// Cuts the connection without a word.
    pub(crate) fn cut(self) {
        drop(self.connection);
    }
}

/// Accepts the next claim on a data connection.
pub(crate) async fn claim(data: &mut Connection) -> Relay {
    claim_with(data, HeaderMap::new()).await
}

/// The same, with these headers in the answer.
pub(crate) async fn claim_with(data: &mut Connection, headers: HeaderMap) -> Relay {
    let call = data.call().await;
    assert_eq!(call.path(), path::RELAY_STREAM);
    let metadata = call.head.headers.clone();
    let (outbox, mut inbox) = call.accept(headers).unwrap();
    let Received::Message(first) = inbox.next().await else {
        panic!("a claim without init");
    };
    let Some(RelayPayload::Init(init)) = RelayFrame::decode(first).unwrap().payload else {
        panic!("a claim whose first frame is no init");
    };
    Relay {
        init,
        metadata,
        outbox,
        inbox,
    }
}

impl Relay {
    pub(crate) async fn send(&mut self, bytes: &'static [u8]) {
        self.outbox.message(&RelayFrame::data(bytes)).await.unwrap();
    }

    /// The next frame, or how the requests ended.
    pub(crate) async fn next(&mut self) -> Result<RelayPayload, Received> {
        match within(GENEROUS, "a frame", self.inbox.next()).await {
            Received::Message(message) => Ok(RelayFrame::decode(message).unwrap().payload.unwrap()),
            end => Err(end),
        }
    }

    /// Reads `wanted` bytes.
    pub(crate) async fn read(&mut self, wanted: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < wanted {
            match self.next().await {
                Ok(RelayPayload::Data(data)) => bytes.extend_from_slice(&data),
                other => panic!("{other:?} after {} bytes", bytes.len()),
            }
        }
        bytes
    }

    /// Sends bytes to an echo and reads them back.
    pub(crate) async fn echo(&mut self, bytes: &'static [u8]) {
        self.send(bytes).await;
        assert_eq!(self.read(bytes.len()).await, bytes);
    }
}
