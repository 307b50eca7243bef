//! Unary calls: a connection as the tower service that tonic's generated clients run on.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use tonic::body::Body;
use tower_service::Service;

use super::{Connection, OpenError};
use crate::Lost;
use crate::stream::{Incoming, Upload};

/// Why a call failed without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The call could not be begun.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The call was begun, and its stream lost.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// A call under way.
type CallFuture = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, CallError>> + Send>>;

impl Service<Request<Body>> for Connection {
    type Response = Response<ResponseBody>;
    type Error = CallError;
    type Future = CallFuture;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        // Room is known when the stream is opened, and refused then.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> CallFuture {
        let (mut parts, body) = request.into_parts();
        parts.uri = self.origin().uri(parts.uri.path());
        parts.extensions.clear();
        let opened = self.send(Request::from_parts(parts, ()));
        Box::pin(async move {
            let (send, head) = opened?;
            let mut upload = Some(Upload::new(send, body));
            let (parts, recv) = WithUpload {
                inner: head,
                upload: &mut upload,
            }
            .await?;
            Ok(Response::from_parts(
                parts,
                ResponseBody {
                    incoming: Incoming::new(recv),
                    upload,
                },
            ))
        })
    }
}

/// Waits for `inner` and sends the request in the meantime.
struct WithUpload<'a, F> {
    inner: F,
    upload: &'a mut Option<Upload<Body>>,
}

impl<F: Future + Unpin> Future for WithUpload<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        drive(self.upload, cx);
        Pin::new(&mut self.inner).poll(cx)
    }
}

/// Sends what can be sent. How the upload ends is the response's to tell.
fn drive(upload: &mut Option<Upload<Body>>, cx: &mut Context<'_>) {
    if upload
        .as_mut()
        .is_some_and(|running| Pin::new(running).poll(cx).is_ready())
    {
        *upload = None;
    }
}

/// The response to a call. Gives credit as it is read; dropped early, it cancels the call.
#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
    upload: Option<Upload<Body>>,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Lost;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Lost>>> {
        drive(&mut self.upload, cx);
        Pin::new(&mut self.incoming).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }
}
