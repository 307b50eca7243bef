//! `grpc-timeout` of calls that are no byte streams: the caller's own deadline ends them.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use tidegate_lifecycle::{End, Origin, Reason};
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;

use crate::{metadata, status};

/// A service whose calls end with OPERATION_TIMEOUT when they have no answer by the deadline that
/// their request names. It counts from the request's headers, so that a request whose message never
/// comes ends too.
#[derive(Clone, Debug)]
pub(super) struct Deadline<S>(pub(super) S);

impl<S: NamedService> NamedService for Deadline<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, B> Service<Request<B>> for Deadline<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let limit = metadata::timeout(request.headers());
        let answer = self.0.call(request);
        Box::pin(async move {
            let Some(limit) = limit else {
                return answer.await;
            };
            let in_time = tokio::time::timeout(limit, answer).await;
            in_time.unwrap_or_else(|_| Ok(status::to_tonic(&late()).into_http()))
        })
    }
}

fn late() -> End {
    let message = "the call's own deadline passed before its answer was ready";
    End::new(Origin::Gateway, Reason::OperationTimeout, message)
}
