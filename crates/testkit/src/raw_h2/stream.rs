//! The two halves of an HTTP/2 stream, the same for client and server.

use std::{future::poll_fn, io};

use bytes::Bytes;
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use prost::Message;

use super::grpc::{self, MessageReader};

/// How a stream was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamLost {
    /// RST_STREAM, from either side.
    #[error("reset with {0:?}")]
    Reset(Reason),
    /// GOAWAY.
    #[error("connection ended with {0:?}")]
    GoAway(Reason),
    /// The connection broke.
    #[error("connection broken: {0}")]
    Broken(io::ErrorKind),
    /// The stream or the connection is closed already.
    #[error("closed already")]
    Closed,
}

impl From<h2::Error> for StreamLost {
    fn from(error: h2::Error) -> Self {
        match (error.get_io(), error.reason()) {
            (Some(io), _) => Self::Broken(io.kind()),
            (None, Some(reason)) if error.is_go_away() => Self::GoAway(reason),
            (None, Some(reason)) => Self::Reset(reason),
            (None, None) => Self::Closed,
        }
    }
}

/// What arrives next on a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    /// One gRPC message, without its prefix.
    Message(Bytes),
    /// END_STREAM without trailers.
    End,
    /// Trailers, and with them the end.
    Trailers(HeaderMap),
    /// Anything else that ends a stream.
    Lost(StreamLost),
}

/// The sending half.
#[derive(Debug)]
pub struct Outbox(pub(super) SendStream<Bytes>);

impl Outbox {
    /// Sends bytes as the peer's windows allow; waits until all are handed to h2.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if the stream is reset or its connection gone.
    pub async fn send(&mut self, mut bytes: Bytes) -> Result<(), StreamLost> {
        while !bytes.is_empty() {
            self.0.reserve_capacity(bytes.len());
            let capacity = poll_fn(|cx| self.0.poll_capacity(cx)).await;
            let granted = capacity.ok_or(StreamLost::Closed)??.min(bytes.len());
            self.0.send_data(bytes.split_to(granted), false)?;
        }
        Ok(())
    }

    /// Frames and sends one message.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub async fn message(&mut self, message: &impl Message) -> Result<(), StreamLost> {
        self.send(grpc::frame(message)).await
    }

    /// Hands bytes to h2 without regard to windows; they wait inside it.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn push(&mut self, bytes: Bytes) -> Result<(), StreamLost> {
        Ok(self.0.send_data(bytes, false)?)
    }

    /// Sends END_STREAM.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn finish(&mut self) -> Result<(), StreamLost> {
        Ok(self.0.send_data(Bytes::new(), true)?)
    }

    /// Sends trailers with this gRPC status, and with them END_STREAM.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn status(&mut self, code: tonic::Code) -> Result<(), StreamLost> {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", (code as i32).into());
        self.trailers(trailers)
    }

    /// Sends any trailers, and with them END_STREAM.
    ///
    /// # Errors
    ///
    /// As [`send`](Self::send).
    pub fn trailers(&mut self, trailers: HeaderMap) -> Result<(), StreamLost> {
        Ok(self.0.send_trailers(trailers)?)
    }

    /// Sends RST_STREAM with this code; what is queued is thrown away.
    pub fn reset(&mut self, code: Reason) {
        self.0.send_reset(code);
    }

    /// Waits for the peer's RST_STREAM or the loss of the connection.
    pub async fn lost(&mut self) -> StreamLost {
        match poll_fn(|cx| self.0.poll_reset(cx)).await {
            Ok(reason) => StreamLost::Reset(reason),
            Err(error) => error.into(),
        }
    }
}

/// The receiving half. It gives credit for all it reads, unless told to withhold it.
#[derive(Debug)]
pub struct Inbox {
    stream: RecvStream,
    messages: MessageReader,
    withheld: Option<usize>,
}

impl Inbox {
    pub(super) fn new(stream: RecvStream) -> Self {
        Self {
            stream,
            messages: MessageReader::default(),
            withheld: None,
        }
    }

    /// Stops sending WINDOW_UPDATE from here on.
    pub fn withhold_credit(&mut self) {
        self.withheld.get_or_insert(0);
    }

    /// Gives all credit that was withheld, and again for what comes.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if the stream is gone.
    pub fn give_credit(&mut self) -> Result<(), StreamLost> {
        let withheld = self.withheld.take().unwrap_or(0);
        Ok(self.stream.flow_control().release_capacity(withheld)?)
    }

    /// Returns the next message, or how the direction ended.
    ///
    /// # Cancel safety
    ///
    /// Safe: a piece of a message that has arrived is kept.
    pub async fn next(&mut self) -> Received {
        loop {
            if let Some(message) = self.messages.pop() {
                return Received::Message(message);
            }
            match poll_fn(|cx| self.stream.poll_data(cx)).await {
                Some(Ok(piece)) => self.take(&piece),
                Some(Err(error)) => return Received::Lost(error.into()),
                None => return self.end().await,
            }
        }
    }

    /// Lets `message`, which was read, be the next one again.
    pub fn put_back(&mut self, message: &[u8]) {
        self.messages.put_back(message);
    }

    /// Reads messages to the end and returns them with it.
    pub async fn rest(&mut self) -> (Vec<Bytes>, Received) {
        let mut messages = Vec::new();
        loop {
            match self.next().await {
                Received::Message(message) => messages.push(message),
                end @ (Received::End | Received::Trailers(_) | Received::Lost(_)) => {
                    return (messages, end);
                }
            }
        }
    }

    fn take(&mut self, piece: &[u8]) {
        self.messages.push(piece);
        match &mut self.withheld {
            Some(withheld) => *withheld += piece.len(),
            // Fails only on a stream that is gone, which the next poll tells.
            None => drop(self.stream.flow_control().release_capacity(piece.len())),
        }
    }

    /// h2 shows a reset with NO_ERROR or CANCEL as an end too: only `is_end_stream` tells them apart.
    async fn end(&mut self) -> Received {
        match poll_fn(|cx| self.stream.poll_trailers(cx)).await {
            Ok(Some(trailers)) => Received::Trailers(trailers),
            Ok(None) if self.stream.is_end_stream() => Received::End,
            Ok(None) => Received::Lost(StreamLost::Closed),
            Err(error) => Received::Lost(error.into()),
        }
    }
}
