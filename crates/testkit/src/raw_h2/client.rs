//! The client side of a raw connection.

use std::{
    io,
    net::SocketAddr,
    sync::{Mutex, PoisonError},
};

use bytes::Bytes;
use h2::{Ping, PingPong, client};
use http::{HeaderMap, Request, StatusCode};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
};

use super::stream::{Inbox, Outbox, StreamLost};

/// One connection to a server; dropping it closes the socket.
#[derive(Debug)]
pub struct Client {
    requests: client::SendRequest<Bytes>,
    pings: Mutex<Option<PingPong>>,
    driver: JoinSet<Result<(), StreamLost>>,
}

impl Client {
    /// Connects with h2's own settings.
    ///
    /// # Errors
    ///
    /// If the server cannot be reached or does not speak HTTP/2.
    pub async fn connect(address: SocketAddr) -> io::Result<Self> {
        Self::connect_with(address, &client::Builder::new()).await
    }

    /// Connects with these settings, for instance tiny windows.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn connect_with(address: SocketAddr, settings: &client::Builder) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Self::over(stream, settings).await
    }

    /// Speaks over any byte stream, for instance TLS.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub async fn over<S>(stream: S, settings: &client::Builder) -> io::Result<Self>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let handshake = settings.handshake(stream).await;
        let (requests, mut connection) = handshake.map_err(io::Error::other)?;
        let pings = Mutex::new(connection.ping_pong());
        let mut driver = JoinSet::new();
        driver.spawn(async move { connection.await.map_err(StreamLost::from) });
        Ok(Self {
            requests,
            pings,
            driver,
        })
    }

    /// Starts a call as a gRPC client does: `path`, `te`, `content-type`, and this metadata.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if the connection takes no more streams.
    pub async fn open(&self, path: &str, metadata: HeaderMap) -> Result<Call, StreamLost> {
        let mut request = Request::post(format!("http://raw.test{path}"))
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .body(())
            .expect("a test's path is valid");
        request.headers_mut().extend(metadata);
        self.request(request).await
    }

    /// Starts any request.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub async fn request(&self, request: Request<()>) -> Result<Call, StreamLost> {
        let mut requests = self.requests.clone().ready().await?;
        let (response, stream) = requests.send_request(request, false)?;
        Ok(Call {
            outbox: Outbox(stream),
            response: Response(response),
        })
    }

    /// Sends PING and waits for its answer.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if the connection ends first, `Closed` also if another ping is under way.
    pub async fn ping(&self) -> Result<(), StreamLost> {
        let mut pings = self.take_pings().ok_or(StreamLost::Closed)?;
        pings.ping(Ping::opaque()).await?;
        *self.pings.lock().unwrap_or_else(PoisonError::into_inner) = Some(pings);
        Ok(())
    }

    /// Waits for the end of the connection and says how it came.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] unless it was a clean one.
    pub async fn closed(mut self) -> Result<(), StreamLost> {
        let Self {
            requests, driver, ..
        } = &mut self;
        let _requests = requests; // kept: the connection is not ours to end
        match driver.join_next().await {
            Some(Ok(end)) => end,
            Some(Err(_)) | None => Err(StreamLost::Closed),
        }
    }

    fn take_pings(&self) -> Option<PingPong> {
        self.pings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

/// A call under way.
#[derive(Debug)]
pub struct Call {
    /// The request's body.
    pub outbox: Outbox,
    /// What the server will answer.
    pub response: Response,
}

/// An answer that may not have begun.
#[derive(Debug)]
pub struct Response(client::ResponseFuture);

impl Response {
    /// Waits for the headers.
    ///
    /// # Errors
    ///
    /// [`StreamLost`] if there will be none.
    pub async fn headers(self) -> Result<(StatusCode, HeaderMap, Inbox), StreamLost> {
        let (head, body) = self.0.await?.into_parts();
        Ok((head.status, head.headers, Inbox::new(body)))
    }
}
