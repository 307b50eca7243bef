//! Holds idle supervisor sessions at a gateway, each on a connection of its own as supervisors do.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use http::{Method, Request, Version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;

use super::{grpc, ready, tls};
use crate::bounded::{SHORT, within};

/// Sessions opened at a time.
const BATCH: usize = 32;

/// Shorter than any interval a gateway asks for.
const HEARTBEAT: Duration = Duration::from_secs(5);

const PATH: &str = "/openshell.v1.OpenShell/ConnectSupervisor";

/// Opens `count` sessions, says so, and keeps them alive until one of them ends.
pub(super) async fn run(gateway: SocketAddr, count: usize, folder: Option<&Path>) -> Result<()> {
    let connector = folder.map(tls::h2_connector).transpose()?;
    let mut sessions = Sessions::default();
    for start in (0..count).step_by(BATCH) {
        let mut opening = JoinSet::new();
        for index in start..count.min(start + BATCH) {
            opening.spawn(open(gateway, index, connector.clone()));
        }
        while let Some(opened) = opening.join_next().await {
            sessions.keep(opened??);
        }
    }
    ready(count)?;
    sessions.run().await
}

#[derive(Default)]
struct Sessions {
    requests: Vec<SendStream<Bytes>>,
    tasks: JoinSet<Result<()>>,
}

impl Sessions {
    fn keep(&mut self, session: Session) {
        self.requests.push(session.request);
        self.tasks.spawn(read(session.response, session.connection));
    }

    /// Sends heartbeats; returns only with the error of the first session that ended.
    async fn run(mut self) -> Result<()> {
        let mut beat = tokio::time::interval(HEARTBEAT);
        loop {
            tokio::select! {
                _ = beat.tick() => {
                    for request in &mut self.requests {
                        request.send_data(grpc::heartbeat(), false)?;
                    }
                }
                Some(ended) = self.tasks.join_next() => ended??,
            }
        }
    }
}

struct Session {
    request: SendStream<Bytes>,
    response: RecvStream,
    connection: JoinSet<Result<(), h2::Error>>,
}

async fn open(
    gateway: SocketAddr,
    index: usize,
    connector: Option<TlsConnector>,
) -> Result<Session> {
    within(format!("opening session {index}"), SHORT, async {
        let socket = TcpStream::connect(gateway).await?;
        socket.set_nodelay(true)?;
        match connector {
            None => say_hello(socket, "http", index).await,
            Some(connector) => {
                let socket = connector.connect(tls::server_name(), socket).await?;
                say_hello(socket, "https", index).await
            }
        }
    })
    .await
}

async fn say_hello<IO>(io: IO, scheme: &str, index: usize) -> Result<Session>
where
    IO: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (send, driver) = h2::client::handshake(io).await?;
    let mut connection = JoinSet::new();
    connection.spawn(driver);
    let (request, mut response) = call(send, scheme, index).await?;
    let first = response.data().await.context("no answer to the hello")??;
    response.flow_control().release_capacity(first.len())?;
    ensure!(
        grpc::is_accepted(&first),
        "the gateway rejected session {index}: {first:?}"
    );
    Ok(Session {
        request,
        response,
        connection,
    })
}

async fn call(
    send: SendRequest<Bytes>,
    scheme: &str,
    index: usize,
) -> Result<(SendStream<Bytes>, RecvStream)> {
    let head = Request::builder()
        .version(Version::HTTP_2)
        .method(Method::POST)
        .uri(format!("{scheme}://{}{PATH}", tls::SERVER_NAME))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())?;
    let (response, mut request) = send.ready().await?.send_request(head, false)?;
    let name = format!("idle-{index}");
    request.send_data(grpc::hello(&name, &name), false)?;
    let response = response.await?;
    ensure!(
        response.status() == 200,
        "HTTP status {}",
        response.status()
    );
    Ok((request, response.into_body()))
}

/// Reads what the gateway says until the session ends, which is an error.
async fn read(
    mut response: RecvStream,
    mut connection: JoinSet<Result<(), h2::Error>>,
) -> Result<()> {
    loop {
        tokio::select! {
            piece = response.data() => match piece {
                Some(piece) => response.flow_control().release_capacity(piece?.len())?,
                None => bail!("the gateway ended a session: {:?}", response.trailers().await?),
            },
            Some(ended) = connection.join_next() => bail!("a connection ended: {:?}", ended?),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::DuplexStream;

    use super::*;

    #[tokio::test]
    async fn a_session_opens_when_its_hello_is_accepted() {
        let (ours, theirs) = tokio::io::duplex(4096);
        let mut gateway = JoinSet::new();
        gateway.spawn(answer(theirs, b"\0\0\0\0\x02\x0a\0"));
        say_hello(ours, "http", 7).await.unwrap();
    }

    #[tokio::test]
    async fn a_rejected_session_is_an_error() {
        let (ours, theirs) = tokio::io::duplex(4096);
        let mut gateway = JoinSet::new();
        gateway.spawn(answer(theirs, b"\0\0\0\0\x02\x12\0"));
        let refused = say_hello(ours, "http", 7).await.err().unwrap();
        assert!(
            refused.to_string().contains("rejected session 7"),
            "{refused}"
        );
    }

    /// A gateway for session 7: answers its hello with `message`, then stays.
    async fn answer(io: DuplexStream, message: &'static [u8]) {
        let mut connection = h2::server::handshake(io).await.unwrap();
        let (request, mut respond) = connection.accept().await.unwrap().unwrap();
        let mut driver = JoinSet::new();
        driver.spawn(async move { while connection.accept().await.is_some() {} });
        assert_eq!(request.uri().path(), PATH);
        let mut body = request.into_body();
        let hello = body.data().await.unwrap().unwrap();
        assert!(hello.windows(6).any(|part| part == b"idle-7"), "{hello:?}");
        let mut response = respond
            .send_response(http::Response::new(()), false)
            .unwrap();
        response
            .send_data(Bytes::from_static(message), false)
            .unwrap();
        driver.join_next().await;
    }
}
