//! A client of `ForwardTcp` that sends what it is told.

use std::net::SocketAddr;

use bytes::Bytes;
use h2::Reason;
use http::HeaderMap;
use prost::Message;
use tidegate_testkit::messages::{ForwardFrame, ForwardInit, ForwardPayload, TcpTarget, path};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{self, Call, Inbox, Outbox, Received, StreamLost};
use tidegate_testkit::wait::{GENEROUS, within};

use super::owned;
use crate::{SANDBOX, World};

/// One connection to the gateway that clients talk to.
#[derive(Debug)]
pub struct Client(raw_h2::Client);

impl Client {
    /// Connects.
    ///
    /// # Panics
    ///
    /// If that fails.
    pub async fn connect(world: &World) -> Self {
        let connected = super::connect(world, world.client_address()).await;
        Self(connected.expect("the gateway listens"))
    }

    /// The connection itself.
    pub fn raw(&self) -> &raw_h2::Client {
        &self.0
    }

    /// Starts a call of `path` and sends nothing.
    ///
    /// # Panics
    ///
    /// If the connection takes no more streams.
    pub async fn call(&self, path: &str) -> Call {
        let opening = self.0.open(path, HeaderMap::new());
        let call = within(GENEROUS, "room for a call", opening).await;
        call.expect("the connection is up")
    }

    /// Starts `ForwardTcp` to `target` and sends the init.
    pub async fn forward(&self, target: SocketAddr, capabilities: &[&str]) -> Forward {
        self.forward_with(init(target, capabilities)).await
    }

    /// Starts `ForwardTcp` with any init.
    ///
    /// # Panics
    ///
    /// If the connection takes no more streams.
    pub async fn forward_with(&self, init: ForwardInit) -> Forward {
        let mut forward = Forward::from(self.call(path::FORWARD_TCP).await);
        forward
            .send(ForwardFrame::init(init))
            .await
            .expect("an init fits");
        forward
    }
}

/// An init of the world's sandbox.
pub fn init(target: SocketAddr, capabilities: &[&str]) -> ForwardInit {
    ForwardInit {
        sandbox: SANDBOX.to_owned(),
        tcp: Some(TcpTarget {
            host: target.ip().to_string(),
            port: target.port().into(),
        }),
        capabilities: owned(capabilities),
        ..ForwardInit::default()
    }
}

/// A `ForwardTcp` under way.
#[derive(Debug)]
pub struct Forward {
    /// What goes to the gateway.
    pub outbox: Outbox,
    answer: Answer,
}

/// The gateway's side of a call.
#[derive(Debug)]
pub enum Answer {
    /// There are no headers yet.
    Coming(raw_h2::Response),
    /// The headers were read.
    Here(Inbox),
    /// The headers were the whole answer.
    Over(Outcome),
    /// There was none.
    Lost(StreamLost),
}

impl From<Call> for Forward {
    fn from(call: Call) -> Self {
        Self {
            outbox: call.outbox,
            answer: Answer::Coming(call.response),
        }
    }
}

impl Forward {
    /// Sends a frame.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if the stream is gone.
    pub async fn send(&mut self, frame: ForwardFrame) -> Result<(), StreamLost> {
        self.outbox.message(&frame).await
    }

    /// Sends data.
    ///
    /// # Panics
    ///
    /// If the stream is gone.
    pub async fn data(&mut self, data: impl Into<Bytes>) {
        let sent = self.send(ForwardFrame::data(data)).await;
        sent.expect("the stream is open");
    }

    /// Sends FIN as peers that know the frame do: the frame, then END_STREAM.
    ///
    /// # Panics
    ///
    /// If the stream is gone.
    pub async fn half_close(&mut self) {
        let sent = self.send(ForwardFrame::half_close()).await;
        sent.expect("the stream is open");
        self.outbox.finish().expect("the stream is open");
    }

    /// Resets the call.
    pub fn reset(&mut self, code: Reason) {
        self.outbox.reset(code);
    }

    /// Waits for the headers, which say that the path is open.
    ///
    /// # Panics
    ///
    /// If there are none, or no more than a status.
    pub async fn opened(&mut self) -> &mut Inbox {
        self.answered().await;
        match &mut self.answer {
            Answer::Here(inbox) => inbox,
            other => panic!("the path was not opened: {other:?}"),
        }
    }

    /// Waits for headers, or a status in their place, and tells whether the path was opened.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn is_opened(&mut self) -> bool {
        self.answered().await;
        matches!(self.answer, Answer::Here(_))
    }

    /// Reads data until `wanted` bytes have come, or until the answer ends.
    pub async fn read(&mut self, wanted: usize) -> Vec<u8> {
        let inbox = self.opened().await;
        let mut bytes = Vec::new();
        let reading = async {
            while bytes.len() < wanted {
                match inbox.next().await {
                    Received::Message(message) => bytes.extend_from_slice(&payload(message)),
                    Received::End | Received::Trailers(_) | Received::Lost(_) => break,
                }
            }
        };
        within(GENEROUS, "data", reading).await;
        bytes
    }

    /// Reads to the end of the call and returns its status.
    ///
    /// # Errors
    ///
    /// How it was lost, if there was no status.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn outcome(&mut self) -> Result<Outcome, StreamLost> {
        within(GENEROUS, "the end of the call", self.end()).await
    }

    async fn end(&mut self) -> Result<Outcome, StreamLost> {
        self.answered().await;
        match &mut self.answer {
            Answer::Here(inbox) => match inbox.rest().await.1 {
                Received::Trailers(trailers) => {
                    Ok(Outcome::from_headers(&trailers).expect("trailers have a status"))
                }
                Received::Lost(lost) => Err(lost),
                Received::End | Received::Message(_) => Err(StreamLost::Closed),
            },
            Answer::Over(outcome) => Ok(outcome.clone()),
            Answer::Lost(lost) => Err(*lost),
            Answer::Coming(_) => Err(StreamLost::Closed),
        }
    }

    async fn answered(&mut self) {
        let coming = std::mem::replace(&mut self.answer, Answer::Lost(StreamLost::Closed));
        self.answer = match coming {
            Answer::Coming(response) => {
                match within(GENEROUS, "headers", response.headers()).await {
                    Ok((_, headers, inbox)) => match Outcome::from_headers(&headers) {
                        Some(outcome) => Answer::Over(outcome),
                        None => Answer::Here(inbox),
                    },
                    Err(lost) => Answer::Lost(lost),
                }
            }
            answered => answered,
        };
    }
}

fn payload(message: Bytes) -> Bytes {
    let frame = ForwardFrame::decode(message).expect("a gateway sends frames");
    match frame.payload {
        Some(ForwardPayload::Data(data)) => data,
        Some(ForwardPayload::Init(_) | ForwardPayload::HalfClose(_)) | None => Bytes::new(),
    }
}
