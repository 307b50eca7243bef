//! One relay at a released gateway; the test is the client behind it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::Stream;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use super::service::Shared;
use crate::{
    content::{Content, Digest},
    legacy::rpc,
    messages::{RelayFrame, RelayInit, RelayPayload},
    outcome::Outcome,
    wait::{self, GENEROUS},
};

/// The size of the pieces in which released gateways send.
const PIECE: usize = 16 * 1024;

/// An open relay. Dropping it, like [`finish`](Self::finish), ends the response with OK.
#[derive(Debug)]
pub struct Relay {
    init: RelayInit,
    frames: Streaming<RelayFrame>,
    response: Option<mpsc::Sender<Result<RelayFrame, Status>>>,
}

/// What came from the supervisor, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayEnd {
    /// How many bytes came.
    pub bytes: u64,
    /// Their digest.
    pub sha256: Digest,
    /// How many frames came that were neither init nor data; a released gateway expects none.
    pub surprises: usize,
    /// OK for the end of the request stream, else its failure.
    pub outcome: Outcome,
}

/// Answers a claim and hands the relay to who waits for it.
pub(super) async fn accept(
    shared: Arc<Shared>,
    request: Request<Streaming<RelayFrame>>,
) -> Result<Response<impl Stream<Item = Result<RelayFrame, Status>>>, Status> {
    let mut frames = request.into_inner();
    let first = frames.message().await?.and_then(|frame| frame.payload);
    let Some(RelayPayload::Init(init)) = first else {
        return Err(Status::invalid_argument("the first frame must be init"));
    };
    let claim = shared.claim(&init.channel_id);
    let claim = claim.ok_or_else(|| Status::not_found("no such channel"))?;
    let (response, queue) = mpsc::channel(rpc::QUEUE);
    let relay = Relay {
        init,
        frames,
        response: Some(response),
    };
    claim
        .send(relay)
        .map_err(|_| Status::deadline_exceeded("nobody waits for it any more"))?;
    Ok(Response::new(rpc::queued(queue)))
}

impl Relay {
    /// Returns the supervisor's first frame.
    pub fn init(&self) -> &RelayInit {
        &self.init
    }

    /// Sends bytes towards the target in pieces of 16 KiB; false if the call is over.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> bool {
        let mut bytes = bytes.into();
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            if !self.send_frame(RelayFrame::data(piece)).await {
                return false;
            }
        }
        true
    }

    /// Sends content towards the target; false if the call is over.
    pub async fn send_content(&self, content: Content) -> bool {
        for chunk in content.chunks() {
            if !self.send(chunk).await {
                return false;
            }
        }
        true
    }

    /// Sends any frame; false if the call is over.
    ///
    /// # Panics
    ///
    /// After [`finish`](Self::finish).
    pub async fn send_frame(&self, frame: RelayFrame) -> bool {
        let response = self
            .response
            .as_ref()
            .expect("nothing is sent after the end");
        response.send(Ok(frame)).await.is_ok()
    }

    /// Ends the response with OK, the only FIN a released gateway knows, and goes on reading.
    pub fn finish(&mut self) {
        self.response = None;
    }

    /// Ends the response with this status.
    pub async fn fail(&mut self, status: Status) {
        if let Some(response) = self.response.take() {
            let _ = response.send(Err(status)).await; // the supervisor may have gone before
        }
    }

    /// Waits for the next frame from the target; an error is the end of the request, OK included.
    ///
    /// # Errors
    ///
    /// How the request stream ended.
    pub async fn next(&mut self) -> Result<RelayFrame, Outcome> {
        match self.frames.message().await {
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => Err(Outcome::from(&Status::ok(""))),
            Err(status) => Err(Outcome::from(&status)),
        }
    }

    /// Reads until it has `wanted` bytes.
    ///
    /// # Panics
    ///
    /// If the request ends before.
    pub async fn read(&mut self, wanted: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < wanted {
            match self.next().await {
                Ok(frame) => bytes.extend_from_slice(data(&frame).unwrap_or_default()),
                Err(end) => panic!("{end:?} after {} of {wanted} bytes", bytes.len()),
            }
        }
        bytes
    }

    /// Reads to the end of the request stream.
    ///
    /// # Panics
    ///
    /// If that has not come within 30 s.
    pub async fn read_to_end(&mut self) -> RelayEnd {
        wait::within(GENEROUS, "the end of the relay's requests", self.drain()).await
    }

    async fn drain(&mut self) -> RelayEnd {
        let (mut bytes, mut hasher, mut surprises) = (0, Sha256::new(), 0);
        loop {
            match self.next().await {
                Ok(frame) => match data(&frame) {
                    Some(data) => {
                        bytes += data.len() as u64;
                        hasher.update(data);
                    }
                    None => surprises += 1,
                },
                Err(outcome) => {
                    let sha256 = Digest::finish(hasher);
                    return RelayEnd {
                        bytes,
                        sha256,
                        surprises,
                        outcome,
                    };
                }
            }
        }
    }
}

fn data(frame: &RelayFrame) -> Option<&[u8]> {
    match &frame.payload {
        Some(RelayPayload::Data(data)) => Some(data),
        Some(RelayPayload::Init(_) | RelayPayload::HalfClose(_)) | None => None,
    }
}
