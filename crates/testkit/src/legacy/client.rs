//! A released client of `ForwardTcp`.

use std::net::SocketAddr;

use bytes::Bytes;
use http::HeaderMap;
use sha2::{Digest as _, Sha256};
use tokio::sync::mpsc;
use tonic::{Streaming, transport::Channel};

use super::{Dialect, rpc};
use crate::{
    content::{Content, Digest},
    messages::{
        CreateSshSessionRequest, CreateSshSessionResponse, ForwardFrame, ForwardInit,
        ForwardPayload, HALF_CLOSE, TcpTarget, path,
    },
    outcome::Outcome,
    wait::{self, GENEROUS},
};

/// The size of the pieces in which released clients send.
const PIECE: usize = 64 * 1024;

/// A connection to a gateway.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
    dialect: Dialect,
}

impl Client {
    /// Connects in plaintext.
    ///
    /// # Errors
    ///
    /// If the gateway cannot be reached.
    pub async fn connect(
        address: SocketAddr,
        dialect: Dialect,
    ) -> Result<Self, tonic::transport::Error> {
        Ok(Self {
            channel: rpc::connect(address).await?,
            dialect,
        })
    }

    /// Gets the ticket that released gateways ask for, then opens a stream with it.
    ///
    /// # Errors
    ///
    /// The status of either call.
    pub async fn forward(&self, sandbox: &str, host: &str, port: u16) -> Result<Forward, Outcome> {
        let ticket = self.create_ssh_session(sandbox).await?;
        let init = ForwardInit {
            sandbox: sandbox.to_owned(),
            tcp: Some(TcpTarget {
                host: host.to_owned(),
                port: port.into(),
            }),
            authorization_token: ticket,
            capabilities: match self.dialect {
                Dialect::Old | Dialect::New => Vec::new(),
                Dialect::Proposed => vec![HALF_CLOSE.to_owned()],
            },
            ..ForwardInit::default()
        };
        self.open(init).await
    }

    /// Gets a ticket.
    ///
    /// # Errors
    ///
    /// The status of the call.
    pub async fn create_ssh_session(&self, sandbox: &str) -> Result<String, Outcome> {
        let request = CreateSshSessionRequest {
            sandbox: sandbox.to_owned(),
        };
        rpc::unary(&self.channel, path::CREATE_SSH_SESSION, request, None)
            .await
            .map(|answer: CreateSshSessionResponse| answer.token)
            .map_err(|status| Outcome::from(&status))
    }

    /// Opens a stream with this init and waits for the response headers.
    ///
    /// # Errors
    ///
    /// The status, if the gateway refuses.
    pub async fn open(&self, init: ForwardInit) -> Result<Forward, Outcome> {
        let (requests, queue) = mpsc::channel(rpc::QUEUE);
        requests
            .try_send(ForwardFrame::init(init))
            .expect("an empty queue has room");
        let opened = rpc::open(&self.channel, path::FORWARD_TCP, queue, None).await;
        let (metadata, answer, _) = opened
            .map_err(|status| Outcome::from(&status))?
            .into_parts();
        Ok(Forward {
            requests: Some(requests),
            answer,
            metadata: metadata.into_headers(),
        })
    }
}

/// An open stream.
#[derive(Debug)]
pub struct Forward {
    requests: Option<mpsc::Sender<ForwardFrame>>,
    answer: Streaming<ForwardFrame>,
    metadata: HeaderMap,
}

/// What came back on a stream, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Download {
    /// How many bytes came.
    pub bytes: u64,
    /// Their digest.
    pub sha256: Digest,
    /// How many FIN frames came; a released client expects none.
    pub half_closes: usize,
    /// The call's status.
    pub outcome: Outcome,
}

impl Forward {
    /// Returns the response's metadata.
    pub fn metadata(&self) -> &HeaderMap {
        &self.metadata
    }

    /// Sends bytes in pieces of 64 KiB; false if the call is over.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> bool {
        let mut bytes = bytes.into();
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE));
            if !self.send_frame(ForwardFrame::data(piece)).await {
                return false;
            }
        }
        true
    }

    /// Sends content; false if the call is over.
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
    pub async fn send_frame(&self, frame: ForwardFrame) -> bool {
        let requests = self
            .requests
            .as_ref()
            .expect("nothing is sent after the end");
        requests.send(frame).await.is_ok()
    }

    /// Ends the request stream, the only FIN a released client knows.
    pub fn finish(&mut self) {
        self.requests = None;
    }

    /// Waits for the next frame; an error is the end of the call, OK included.
    ///
    /// # Errors
    ///
    /// The status of the call.
    pub async fn next(&mut self) -> Result<ForwardFrame, Outcome> {
        match self.answer.message().await {
            Ok(Some(frame)) => Ok(frame),
            Ok(None) => Err(Outcome::from(&tonic::Status::ok(""))),
            Err(status) => Err(Outcome::from(&status)),
        }
    }

    /// Reads until it has `wanted` bytes.
    ///
    /// # Panics
    ///
    /// If the call ends before.
    pub async fn read(&mut self, wanted: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < wanted {
            match self.next().await {
                Ok(frame) => bytes.extend_from_slice(&payload(&frame)),
                Err(end) => panic!("{end:?} after {} of {wanted} bytes", bytes.len()),
            }
        }
        bytes
    }

    /// Reads to the end of the call.
    ///
    /// # Panics
    ///
    /// If that has not come within 30 s.
    pub async fn read_to_end(&mut self) -> Download {
        wait::within(GENEROUS, "the end of the call", self.download()).await
    }

    async fn download(&mut self) -> Download {
        let (mut bytes, mut hasher, mut half_closes) = (0, Sha256::new(), 0);
        loop {
            match self.next().await {
                Ok(frame) => {
                    let data = payload(&frame);
                    bytes += data.len() as u64;
                    hasher.update(&data);
                    let is_half_close = matches!(frame.payload, Some(ForwardPayload::HalfClose(_)));
                    half_closes += usize::from(is_half_close);
                }
                Err(outcome) => {
                    let sha256 = Digest::finish(hasher);
                    return Download {
                        bytes,
                        sha256,
                        half_closes,
                        outcome,
                    };
                }
            }
        }
    }

    /// Cancels the call as a released client does: it lets go of everything, the answer first.
    pub fn cancel(self) {
        let Self {
            answer, requests, ..
        } = self;
        drop(answer);
        drop(requests);
    }
}

fn payload(frame: &ForwardFrame) -> Bytes {
    match &frame.payload {
        Some(ForwardPayload::Data(data)) => data.clone(),
        Some(ForwardPayload::Init(_) | ForwardPayload::HalfClose(_)) | None => Bytes::new(),
    }
}
