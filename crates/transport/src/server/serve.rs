//! One accepted connection, from its first byte to its last.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

use super::driver::{Driver, Handlers, Next};
use super::{ConnectionControl, ConnectionInfo, StreamHandler};
use crate::io::{Io, Socket};
use crate::life::Life;
use crate::{Payload, ServerTls, Settings, Shard};

/// The first request of a connection may name the shard to live on.
const LANE: &str = "tidegate-lane";

/// How long a client that failed TLS may take to read why.
const ALERT_LIMIT: Duration = Duration::from_secs(1);

/// How a server treats the connections it accepts.
#[derive(Debug, Default)]
pub struct Server {
    /// The numbers of each connection.
    pub settings: Settings,
    /// TLS, or plaintext without.
    pub tls: Option<Arc<ServerTls>>,
    /// Ends every connection at once when cancelled.
    pub abort: CancellationToken,
}

impl Server {
    /// Serves one accepted connection until it ends. Must run on `shard`; `io` may come from any
    /// runtime, as from a listener that all shards share.
    ///
    /// Streams to a path that `handler` wants go to it, all others to `unary`. When `shutdown` is
    /// cancelled the client is told (GOAWAY), and the connection ends with its last stream. A
    /// client that puts `tidegate-lane: K` into the first request's metadata is moved to shard K
    /// before any stream is handled, so that both connections of a tunnel can share a thread.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the connection, on whichever shard it is.
    pub async fn serve(
        self: Arc<Self>,
        io: TcpStream,
        shard: Shard,
        handler: Arc<dyn StreamHandler>,
        unary: Routes,
        shutdown: CancellationToken,
    ) {
        let handlers = Handlers {
            streams: handler,
            unary,
        };
        match Box::pin(self.establish(io, &shard, &shutdown)).await {
            // Boxed: it is large, would be copied from future to future, and there are many idle ones.
            Ok(driver) => run(Box::new(driver), handlers, &shard).await,
            Err(error) => tracing::debug!(%error, "a connection failed before its first request"),
        }
    }

    async fn establish(
        &self,
        io: TcpStream,
        shard: &Shard,
        shutdown: &CancellationToken,
    ) -> Result<Driver, EstablishError> {
        tokio::select! {
            driver = timeout(self.settings.handshake_timeout, self.handshake(io, shard, shutdown)) => {
                driver.unwrap_or(Err(EstablishError::Timeout))
            }
            () = shutdown.cancelled() => Err(EstablishError::ShuttingDown),
            () = self.abort.cancelled() => Err(EstablishError::ShuttingDown),
        }
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        shard: &Shard,
        shutdown: &CancellationToken,
    ) -> Result<Driver, EstablishError> {
        stream.set_nodelay(true)?;
        let (peer, local) = (stream.peer_addr()?, stream.local_addr()?);
        let life = Arc::new(Life::default());
        life.move_socket();
        let socket = Socket::new(stream, Arc::clone(&life));
        let (io, identity) = self.decrypt(socket, &life).await?;
        let connection = self.settings.server().handshake::<_, Payload>(io).await?;
        let control = ConnectionControl {
            drain: shutdown.child_token(),
            abort: self.abort.child_token(),
            held: Arc::default(),
        };
        let info = ConnectionInfo {
            peer,
            local,
            identity,
            shard: shard.index(),
            connection: control,
        };
        Ok(Driver::new(connection, info, life, &self.settings))
    }

    async fn decrypt(
        &self,
        socket: Socket,
        life: &Arc<Life>,
    ) -> Result<(Io, Option<Arc<[u8]>>), EstablishError> {
        let Some(tls) = &self.tls else {
            return Ok((Io::Plain(socket), None));
        };
        let accepted = tls.acceptor().accept(socket).into_fallible().await;
        let stream = match accepted {
            Ok(stream) => stream,
            Err((error, socket)) => {
                let_alert_arrive(socket).await;
                return Err(EstablishError::Tls(error));
            }
        };
        let certificates = stream.get_ref().1.peer_certificates();
        let identity = certificates
            .and_then(|chain| chain.first())
            .map(|leaf| Arc::from(&**leaf));
        Ok((
            Io::Tls(Box::new(TlsStream::Server(stream)), Arc::clone(life)),
            identity,
        ))
    }
}

/// Waits until a refused client hangs up. Closing before it has would make the kernel reset the
/// connection, and throw away the alert that tells the client why.
async fn let_alert_arrive(mut socket: Socket) {
    let drained = async {
        socket.shutdown().await?;
        tokio::io::copy(&mut socket, &mut tokio::io::sink()).await
    };
    // However it ends: nobody listens here any more.
    let _ = timeout(ALERT_LIMIT, drained).await;
}

/// Runs a connection here or, if its first request asks for it, on another shard.
async fn run(mut driver: Box<Driver>, handlers: Handlers, shard: &Shard) {
    let Next::Stream(first) = driver.next().await else {
        return;
    };
    let lane = first
        .head
        .headers
        .get(LANE)
        .and_then(|lane| lane.to_str().ok()?.parse().ok());
    let home = lane.map_or_else(|| shard.clone(), |lane| shard.sibling(lane));
    if home.index() == shard.index() {
        return driver.run(first, handlers).await;
    }
    // Whoever drops this function drops the guard, and ends the connection over there.
    let _guard = driver.control().abort.clone().drop_guard();
    let moved = home.index();
    let task = home.spawn("connection", async move {
        driver.rehome(moved);
        driver.run(first, handlers).await;
    });
    // An error means that the shard stopped or a handler panicked, and the connection is gone.
    let _ = task.await;
}

/// Why a connection never got to its first request. Logged and forgotten: nobody waits for it.
#[derive(Debug, thiserror::Error)]
enum EstablishError {
    #[error("TLS: {0}")]
    Tls(io::Error),
    #[error("HTTP/2: {0}")]
    Http2(#[from] h2::Error),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("the handshake took too long")]
    Timeout,
    #[error("the server is shutting down")]
    ShuttingDown,
}
