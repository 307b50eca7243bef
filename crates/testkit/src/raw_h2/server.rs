//! The server side of a raw connection.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
};

use bytes::Bytes;
use h2::{Reason, server};
use http::{HeaderMap, request::Parts};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{mpsc, oneshot},
    task::JoinSet,
};

use super::stream::{Inbox, Outbox, StreamLost};
use crate::wait::{self, GENEROUS};

/// How many calls may wait for the test to take them; more are refused.
const WAITING: usize = 4096;

/// A port that speaks HTTP/2.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    settings: server::Builder,
}

impl Server {
    /// Listens on a free port of 127.0.0.1 with h2's own settings.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn bind() -> io::Result<Self> {
        Self::bind_with(server::Builder::new()).await
    }

    /// Listens with these settings, for instance few streams.
    ///
    /// # Errors
    ///
    /// If there is no free port.
    pub async fn bind_with(settings: server::Builder) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok(Self { listener, settings })
    }

    /// Returns the address it listens on.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for the next connection.
    ///
    /// # Errors
    ///
    /// If the other side does not speak HTTP/2.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn accept(&self) -> io::Result<Connection> {
        let accepted = wait::within(GENEROUS, "a connection", self.listener.accept());
        let (stream, _) = accepted.await?;
        stream.set_nodelay(true)?;
        let connection = self
            .settings
            .handshake(stream)
            .await
            .map_err(io::Error::other)?;
        Ok(Connection::drive(connection))
    }
}

/// One accepted connection; dropping it closes the socket.
#[derive(Debug)]
pub struct Connection {
    calls: mpsc::Receiver<Incoming>,
    go_away: Option<oneshot::Sender<Option<Reason>>>,
    driver: JoinSet<Result<(), StreamLost>>,
}

impl Connection {
    fn drive(connection: server::Connection<TcpStream, Bytes>) -> Self {
        let (accepted, calls) = mpsc::channel(WAITING);
        let (go_away, told) = oneshot::channel();
        let mut driver = JoinSet::new();
        driver.spawn(drive(connection, accepted, told));
        Self {
            calls,
            go_away: Some(go_away),
            driver,
        }
    }

    /// Waits for the next call.
    ///
    /// # Panics
    ///
    /// After 30 s, or if the connection ends first.
    pub async fn call(&mut self) -> Incoming {
        let call = wait::within(GENEROUS, "a call", self.calls.recv()).await;
        call.expect("the connection ended before the call came")
    }

    /// Sends GOAWAY: with a code at once and for all streams, without one for later streams only.
    pub fn go_away(&mut self, code: Option<Reason>) {
        if let Some(go_away) = self.go_away.take() {
            let _ = go_away.send(code); // the connection may have ended
        }
    }

    /// Waits for the end of the connection and says how it came.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] unless it was a clean one.
    pub async fn closed(mut self) -> Result<(), StreamLost> {
        match self.driver.join_next().await {
            Some(Ok(end)) => end,
            Some(Err(_)) | None => Err(StreamLost::Closed),
        }
    }
}

async fn drive(
    mut connection: server::Connection<TcpStream, Bytes>,
    accepted: mpsc::Sender<Incoming>,
    mut told: oneshot::Receiver<Option<Reason>>,
) -> Result<(), StreamLost> {
    loop {
        let arrival = tokio::select! {
            arrival = connection.accept() => arrival,
            Ok(code) = &mut told, if !told.is_terminated() => {
                match code {
                    Some(code) => connection.abrupt_shutdown(code),
                    None => connection.graceful_shutdown(),
                }
                continue;
            }
        };
        let Some(arrival) = arrival else {
            return Ok(());
        };
        let (request, respond) = arrival?;
        let (head, body) = request.into_parts();
        let call = Incoming {
            head,
            inbox: Inbox::new(body),
            respond: Responder(respond),
        };
        if let Err(refused) = accepted.try_send(call) {
            refused
                .into_inner()
                .respond
                .0
                .send_reset(Reason::REFUSED_STREAM);
        }
    }
}

/// A call that arrived.
#[derive(Debug)]
pub struct Incoming {
    /// Path and metadata.
    pub head: Parts,
    /// The request's body.
    pub inbox: Inbox,
    respond: Responder,
}

#[derive(Debug)]
struct Responder(server::SendResponse<Bytes>);

impl Incoming {
    /// Returns the path of the RPC.
    pub fn path(&self) -> &str {
        self.head.uri.path()
    }

    /// Sends the headers of a gRPC answer with this metadata, and returns both halves.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if the client has gone.
    pub fn accept(mut self, metadata: HeaderMap) -> Result<(Outbox, Inbox), StreamLost> {
        let response = self.respond.0.send_response(grpc_head(metadata), false)?;
        Ok((Outbox(response), self.inbox))
    }

    /// Answers with a status and nothing else.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if the client has gone.
    pub fn refuse(mut self, code: tonic::Code) -> Result<(), StreamLost> {
        let mut metadata = HeaderMap::new();
        metadata.insert("grpc-status", (code as i32).into());
        self.respond.0.send_response(grpc_head(metadata), true)?;
        Ok(())
    }

    /// Sends RST_STREAM instead of an answer.
    pub fn reset(mut self, code: Reason) {
        self.respond.0.send_reset(code);
    }
}

fn grpc_head(metadata: HeaderMap) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.headers_mut() = metadata;
    let grpc = http::HeaderValue::from_static("application/grpc");
    head.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
    head
}
