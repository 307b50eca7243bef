//! The two RPCs that supervisors call, over tonic without generated code.

use std::{
    collections::HashMap,
    convert::Infallible,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use futures_util::Stream;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;
use tonic::{Request, Response, Status, Streaming, body::Body, server::Grpc};
use tonic_prost::ProstCodec;
use tower_service::Service;

use super::{
    GatewayOptions,
    relay::{self, Relay},
    session::{self, Session},
};
use crate::messages::{GatewayMessage, RelayFrame, SupervisorMessage, path};

/// What all calls of a gateway share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: GatewayOptions,
    pub(super) sessions: mpsc::Sender<Session>,
    pub(super) tasks: TaskTracker,
    claims: Mutex<HashMap<String, oneshot::Sender<Relay>>>,
    numbers: AtomicUsize,
}

impl Shared {
    pub(super) fn new(options: GatewayOptions, sessions: mpsc::Sender<Session>) -> Arc<Self> {
        let (tasks, claims, numbers) = Default::default();
        Arc::new(Self {
            options,
            sessions,
            tasks,
            claims,
            numbers,
        })
    }

    /// Makes an id that was not given out before.
    pub(super) fn new_id(&self, kind: &str) -> String {
        format!("{kind}-{}", self.numbers.fetch_add(1, Ordering::Relaxed))
    }

    /// Waits for the supervisor's `RelayStream` for `channel`.
    pub(super) fn expect_relay(&self, channel: &str) -> oneshot::Receiver<Relay> {
        let (claim, claimed) = oneshot::channel();
        self.claims().insert(channel.to_owned(), claim);
        claimed
    }

    /// Takes the claim on `channel`, which can be done once.
    pub(super) fn claim(&self, channel: &str) -> Option<oneshot::Sender<Relay>> {
        self.claims().remove(channel)
    }

    fn claims(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<Relay>>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The service as tonic's server wants it.
#[derive(Clone, Debug)]
pub(super) struct OpenShell(Arc<Shared>);

impl OpenShell {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    async fn answer(self, request: http::Request<Body>) -> http::Response<Body> {
        let shared = &self.0;
        match request.uri().path() {
            path::CONNECT_SUPERVISOR => {
                let codec = ProstCodec::<GatewayMessage, SupervisorMessage>::default();
                let connect = Bidirectional(|request| session::accept(Arc::clone(shared), request));
                Grpc::new(codec).streaming(connect, request).await
            }
            path::RELAY_STREAM => {
                let codec = ProstCodec::<RelayFrame, RelayFrame>::default();
                let relay = Bidirectional(|request| relay::accept(Arc::clone(shared), request));
                Grpc::new(codec).streaming(relay, request).await
            }
            other => Status::unimplemented(other).into_http(),
        }
    }
}

impl Service<http::Request<Body>> for OpenShell {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

/// A function that answers a stream with a stream.
struct Bidirectional<F>(F);

impl<F, A, S, M, R> Service<Request<Streaming<M>>> for Bidirectional<F>
where
    F: FnMut(Request<Streaming<M>>) -> A,
    A: Future<Output = Result<Response<S>, Status>>,
    S: Stream<Item = Result<R, Status>>,
{
    type Response = Response<S>;
    type Error = Status;
    type Future = A;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<M>>) -> A {
        (self.0)(request)
    }
}
