//! An open connection, and how a stream is opened on it.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use h2::Reason;
use h2::client::ResponseFuture;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version, header, response};

use super::link::{Link, Place};
use crate::stream::Outgoing;
use crate::{Lost, RecvHalf, SendHalf};

/// How this program names itself to servers.
const USER_AGENT: HeaderValue =
    HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")));

/// An open HTTP/2 connection to a server. Cheap to clone.
///
/// It lives as long as a clone of it or one of its streams, on the runtime that connected. It is
/// also a tower service, so that tonic's generated clients run on it.
#[derive(Clone, Debug)]
pub struct Connection {
    link: Arc<Link>,
    origin: Arc<Origin>,
    peer: Option<SocketAddr>,
}

/// Where requests of a connection are addressed to.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
}

/// Why a stream could not be opened. Nothing of it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// As many streams are open as the server allows. Another connection has room.
    #[error("the connection has as many streams as the server allows")]
    Full,
    /// The connection takes no more streams.
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl Connection {
    pub(crate) fn new(link: Arc<Link>, origin: Arc<Origin>, peer: Option<SocketAddr>) -> Self {
        Self { link, origin, peer }
    }

    /// Tells the address of the socket's other end: the server's, or that of a proxy.
    pub const fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Opens a gRPC stream to `path` with `headers` beside those that gRPC demands.
    ///
    /// Returns at once; the request leaves with the next turn of the connection.
    ///
    /// # Errors
    ///
    /// [`OpenError::Full`] at the server's limit, instead of waiting for a stream to end.
    /// [`OpenError::Lost`] when the connection ended or was sent GOAWAY.
    ///
    /// # Panics
    ///
    /// When `path` is not the path of a URI: paths are constants.
    pub fn open(
        &self,
        path: &str,
        headers: HeaderMap,
    ) -> Result<(SendHalf, ResponseHead), OpenError> {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        *request.uri_mut() = self.origin.uri(path);
        let headers = request.headers_mut();
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/grpc"),
        );
        headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
        self.send(request)
    }

    /// Opens a stream with a request that says everything but where the server is.
    pub(crate) fn send(
        &self,
        mut request: Request<()>,
    ) -> Result<(SendHalf, ResponseHead), OpenError> {
        *request.version_mut() = Version::HTTP_2;
        let life = self.link.life();
        if let Some(lost) = life.cause() {
            return Err(lost.into());
        }
        let place = Place::take(&self.link).ok_or(OpenError::Full)?;
        let opened = self.link.request().send_request(request, false);
        let (response, stream) = opened.map_err(|error| life.lost(&error))?;
        let outgoing = Outgoing::at_client(stream, place);
        let head = ResponseHead {
            response,
            request: Some(Arc::clone(&outgoing)),
        };
        Ok((SendHalf::new(outgoing), head))
    }

    pub(crate) fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Tells how many streams are open.
    pub fn active_streams(&self) -> usize {
        self.link.life().streams()
    }

    /// Tells how many streams the server allows at once.
    pub fn max_streams(&self) -> usize {
        self.link.max_streams()
    }

    /// Tells whether [`Connection::open`] would succeed as far as is known.
    pub fn has_room(&self) -> bool {
        self.is_open() && self.active_streams() < self.max_streams()
    }

    /// Tells whether the connection takes streams: it is up, and no GOAWAY has come.
    pub fn is_open(&self) -> bool {
        self.link.is_open()
    }

    /// Waits for the connection's end and tells its cause.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn closed(&self) -> Lost {
        self.link.life().ended().await
    }

    /// Ends the connection at once, and every stream on it with [`Lost::Broken`].
    pub fn close(&self) {
        self.link.close();
    }
}

impl Origin {
    pub(crate) fn uri(&self, path: &str) -> Uri {
        let path = PathAndQuery::try_from(path).expect("a path is a constant and valid");
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(path);
        Uri::from_parts(parts).expect("scheme, authority and path make a URI")
    }
}

/// The response that has not begun yet. Dropped before it has, it resets the stream with CANCEL.
#[derive(Debug)]
pub struct ResponseHead {
    response: ResponseFuture,
    request: Option<Arc<Outgoing>>,
}

impl ResponseHead {
    /// Waits for the response's headers.
    ///
    /// A response that is headers only carries its `grpc-status` among them; the half that comes
    /// with it then ends at once.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the stream ended without headers.
    ///
    /// # Panics
    ///
    /// When polled after it was ready.
    pub fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(response::Parts, RecvHalf), Lost>> {
        let response = ready!(Pin::new(&mut self.response).poll(cx));
        let request = self.request.take().expect("a response is awaited once");
        Poll::Ready(match response {
            Ok(response) => {
                let (parts, stream) = response.into_parts();
                Ok((parts, RecvHalf::at_client(stream, request)))
            }
            Err(error) => Err(request.life().lost(&error)),
        })
    }
}

impl Future for ResponseHead {
    type Output = Result<(response::Parts, RecvHalf), Lost>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().poll_head(cx)
    }
}

impl Drop for ResponseHead {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            request.reset(Reason::CANCEL);
        }
    }
}
