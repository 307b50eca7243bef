//! A supervisor that answers, or does not, as it is told.

use std::net::SocketAddr;

use bytes::Bytes;
use http::HeaderMap;
use prost::Message;
use tidegate_testkit::messages::{
    FromGateway, FromSupervisor, GatewayMessage, Hello, RelayFrame, RelayInit, RelayOpen,
    RelayOpenResult, RelayPayload, SessionAccepted, SupervisorMessage, path,
};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{self, Inbox, Outbox, Received, StreamLost};
use tidegate_testkit::wait::{GENEROUS, within};

use super::owned;
use crate::{SANDBOX, World};

/// A session, and a connection for its relays.
#[derive(Debug)]
pub struct Supervisor {
    /// What the gateway answered to hello.
    pub accepted: SessionAccepted,
    outbox: Outbox,
    inbox: Inbox,
    capabilities: Vec<String>,
    data: raw_h2::Client,
    _control: raw_h2::Client,
}

impl Supervisor {
    /// Opens a session, with control and data on connections of their own.
    ///
    /// # Panics
    ///
    /// If the gateway refuses.
    pub async fn connect(world: &World, capabilities: &[&str]) -> Self {
        Self::connect_for(world, SANDBOX, capabilities).await
    }

    /// As [`connect`](Self::connect), for a sandbox of any name.
    ///
    /// # Panics
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_for(world: &World, sandbox: &str, capabilities: &[&str]) -> Self {
        Self::begin(world, sandbox, capabilities, world.gateway_address()).await
    }

    /// As [`connect`](Self::connect), with the relays' connection going to `data`.
    ///
    /// # Panics
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_with_data(world: &World, capabilities: &[&str], data: SocketAddr) -> Self {
        Self::begin(world, SANDBOX, capabilities, data).await
    }

    async fn begin(world: &World, sandbox: &str, capabilities: &[&str], data: SocketAddr) -> Self {
        let hello = Hello {
            sandbox_id: sandbox.to_owned(),
            instance_id: "raw-supervisor".to_owned(),
            capabilities: owned(capabilities),
            protocol_version: 1,
            ..Hello::default()
        };
        let control = super::connect(world, world.supervisor_address()).await;
        let control = control.expect("the gateway listens");
        let call = control.open(path::CONNECT_SUPERVISOR, HeaderMap::new());
        let mut call = call.await.expect("the connection is up");
        let message = SupervisorMessage::from(FromSupervisor::Hello(hello));
        let sent = call.outbox.message(&message).await;
        sent.expect("the connection is up");
        let headers = within(GENEROUS, "a session", call.response.headers()).await;
        let (_, _, mut inbox) = headers.expect("the gateway answers");
        let accepted = match next(&mut inbox).await {
            Some(FromGateway::SessionAccepted(accepted)) => accepted,
            other => panic!("no session: {other:?}"),
        };
        let data = super::connect(world, data).await;
        Self {
            accepted,
            outbox: call.outbox,
            inbox,
            capabilities: owned(capabilities),
            data: data.expect("the gateway listens"),
            _control: control,
        }
    }

    /// Says something on the control stream.
    ///
    /// # Panics
    ///
    /// If the session is gone.
    pub async fn say(&mut self, message: FromSupervisor) {
        let sent = self.outbox.message(&SupervisorMessage::from(message)).await;
        sent.expect("the session stands");
    }

    /// Says any bytes on the control stream, framed as a message.
    ///
    /// # Panics
    ///
    /// If the session is gone.
    pub async fn say_bytes(&mut self, message: &[u8]) {
        let framed = raw_h2::grpc::frame_bytes(0, message);
        let sent = self.outbox.send(framed).await;
        sent.expect("the session stands");
    }

    /// Waits for what the gateway says next, heartbeats apart; none when the session has ended.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn hear(&mut self) -> Option<FromGateway> {
        loop {
            match next(&mut self.inbox).await {
                Some(FromGateway::Heartbeat(_)) => {}
                other => return other,
            }
        }
    }

    /// Waits for the gateway's next heartbeat, past anything else.
    ///
    /// # Panics
    ///
    /// If the session ends, or says nothing for 30 s.
    pub async fn heartbeat(&mut self) {
        loop {
            match next(&mut self.inbox).await {
                Some(FromGateway::Heartbeat(_)) => return,
                Some(_) => {}
                None => panic!("the session has ended"),
            }
        }
    }

    /// Waits for the next request for a relay.
    ///
    /// # Panics
    ///
    /// If anything else comes, or nothing within 30 s.
    pub async fn asked(&mut self) -> RelayOpen {
        match self.hear().await {
            Some(FromGateway::RelayOpen(open)) => open,
            other => panic!("no request for a relay: {other:?}"),
        }
    }

    /// Answers that the target is connected.
    pub async fn succeed(&mut self, open: &RelayOpen) {
        self.say(FromSupervisor::RelayOpenResult(RelayOpenResult {
            channel_id: open.channel_id.clone(),
            success: true,
            ..RelayOpenResult::default()
        }))
        .await;
    }

    /// Claims a relay.
    pub async fn claim(&self, open: &RelayOpen) -> Relay {
        self.claim_as(RelayInit {
            channel_id: open.channel_id.clone(),
            capabilities: self.capabilities.clone(),
            session_id: if self.capabilities.is_empty() {
                String::new()
            } else {
                self.accepted.session_id.clone()
            },
        })
        .await
    }

    /// Claims a relay with any init.
    ///
    /// # Panics
    ///
    /// If the connection takes no more streams.
    pub async fn claim_as(&self, init: RelayInit) -> Relay {
        let call = self.data.open(path::RELAY_STREAM, HeaderMap::new());
        let call = call.await.expect("the connection is up");
        let mut relay = Relay {
            outbox: call.outbox,
            response: Some(call.response),
            inbox: None,
        };
        relay
            .send(RelayFrame::init(init))
            .await
            .expect("an init fits");
        relay
    }

    /// Serves the next request as far as an open relay.
    pub async fn serve(&mut self) -> (RelayOpen, Relay) {
        let open = self.asked().await;
        self.succeed(&open).await;
        let relay = self.claim(&open).await;
        (open, relay)
    }
}

/// A relay under way.
#[derive(Debug)]
pub struct Relay {
    /// What goes to the gateway.
    pub outbox: Outbox,
    response: Option<raw_h2::Response>,
    inbox: Option<Inbox>,
}

impl Relay {
    /// Sends a frame.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if the stream is gone.
    pub async fn send(&mut self, frame: RelayFrame) -> Result<(), StreamLost> {
        self.outbox.message(&frame).await
    }

    /// Sends data.
    ///
    /// # Panics
    ///
    /// If the stream is gone.
    pub async fn data(&mut self, data: impl Into<Bytes>) {
        let sent = self.send(RelayFrame::data(data)).await;
        sent.expect("the relay is open");
    }

    /// Sends the FIN frame: the target has ended.
    ///
    /// # Panics
    ///
    /// If the stream is gone.
    pub async fn half_close(&mut self) {
        let sent = self.send(RelayFrame::half_close()).await;
        sent.expect("the relay is open");
    }

    /// Sends END_STREAM: the target has taken everything, the client's FIN included.
    ///
    /// # Panics
    ///
    /// If the stream is gone.
    pub fn end(&mut self) {
        self.outbox.finish().expect("the relay is open");
    }

    /// Waits for the headers, which say that the claim is good.
    ///
    /// # Errors
    ///
    /// The status, if it is not.
    ///
    /// # Panics
    ///
    /// If the stream is lost.
    pub async fn opened(&mut self) -> Result<&mut Inbox, Outcome> {
        if let Some(response) = self.response.take() {
            let headers = within(GENEROUS, "headers", response.headers()).await;
            let (_, headers, inbox) = headers.expect("the gateway answers");
            if let Some(outcome) = Outcome::from_headers(&headers) {
                return Err(outcome);
            }
            self.inbox = Some(inbox);
        }
        Ok(self.inbox.as_mut().expect("it was refused before"))
    }

    /// Reads up to the client's FIN frame and returns the bytes before it.
    ///
    /// # Errors
    ///
    /// What ended the stream before.
    ///
    /// # Panics
    ///
    /// If the claim was refused, or after 30 s.
    pub async fn until_fin(&mut self) -> Result<Vec<u8>, Received> {
        within(GENEROUS, "the client's FIN", self.read_fin()).await
    }

    async fn read_fin(&mut self) -> Result<Vec<u8>, Received> {
        let inbox = self.opened().await.expect("the claim is good");
        let mut bytes = Vec::new();
        loop {
            let message = match inbox.next().await {
                Received::Message(message) => message,
                end => return Err(end),
            };
            let frame = RelayFrame::decode(message).expect("a gateway sends frames");
            match frame.payload {
                Some(RelayPayload::Data(data)) => bytes.extend_from_slice(&data),
                Some(RelayPayload::HalfClose(_)) => return Ok(bytes),
                Some(RelayPayload::Init(_)) | None => panic!("a frame without data: {frame:?}"),
            }
        }
    }

    /// Reads to the end of the answer and returns that.
    ///
    /// # Panics
    ///
    /// If the claim was refused, or after 30 s.
    pub async fn over(&mut self) -> Received {
        let inbox = self.opened().await.expect("the claim is good");
        within(GENEROUS, "the relay's end", inbox.rest()).await.1
    }
}

async fn next(inbox: &mut Inbox) -> Option<FromGateway> {
    match within(GENEROUS, "a control message", inbox.next()).await {
        Received::Message(message) => {
            let message = GatewayMessage::decode(message).expect("a gateway sends messages");
            Some(message.payload.expect("a gateway says what is known"))
        }
        Received::End | Received::Trailers(_) | Received::Lost(_) => None,
    }
}
