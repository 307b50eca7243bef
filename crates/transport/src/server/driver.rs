//! The task that moves a connection's frames and hands out its streams.

use std::future::poll_fn;
use std::sync::Arc;

use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::{Method, Request, Response, StatusCode, header};
use tokio::task::JoinSet;
use tonic::service::Routes;

use super::respond::Respond;
use super::{ConnectionControl, ConnectionInfo, ServerStream, StreamHandler, unary};
use crate::io::Io;
use crate::keepalive::KeepAlive;
use crate::life::Life;
use crate::{Lost, Payload, RecvHalf, Settings};

/// Who takes the streams.
pub(super) struct Handlers {
    pub(super) streams: Arc<dyn StreamHandler>,
    pub(super) unary: Routes,
}

/// What a connection brings next.
pub(super) enum Next {
    Stream(Box<ServerStream>),
    Ended,
}

/// One connection. `Draining` once GOAWAY was sent.
pub(super) struct Driver {
    connection: Connection<Io, Payload>,
    info: Arc<ConnectionInfo>,
    life: Arc<Life>,
    keepalive: KeepAlive,
    calls: JoinSet<()>,
    max_calls: usize,
    draining: bool,
}

impl Driver {
    pub(super) fn new(
        mut connection: Connection<Io, Payload>,
        info: ConnectionInfo,
        life: Arc<Life>,
        settings: &Settings,
    ) -> Self {
        let keepalive = KeepAlive::new(settings.ping, connection.ping_pong(), &life);
        Self {
            connection,
            info: Arc::new(info),
            life,
            keepalive,
            calls: JoinSet::new(),
            max_calls: settings.max_unary_calls,
            draining: false,
        }
    }

    pub(super) fn control(&self) -> &ConnectionControl {
        &self.info.connection
    }

    /// Makes the calling thread, which is shard `index`, the connection's home.
    pub(super) fn rehome(&mut self, index: usize) {
        let mut info = ConnectionInfo::clone(&self.info);
        info.shard = index;
        self.info = Arc::new(info);
        self.life.move_socket();
        self.keepalive.rehome();
    }

    /// Hands out streams, beginning with `stream`, until the connection ends.
    pub(super) async fn run(
        mut self: Box<Self>,
        mut stream: Box<ServerStream>,
        handlers: Handlers,
    ) {
        loop {
            stream.connection = Arc::clone(&self.info);
            self.dispatch(*stream, &handlers);
            stream = match self.next().await {
                Next::Stream(stream) => stream,
                Next::Ended => return,
            };
        }
    }

    /// Moves frames until a stream arrives or the connection ends.
    pub(super) async fn next(&mut self) -> Next {
        let control = self.info.connection.clone();
        loop {
            tokio::select! {
                biased;
                () = control.abort.cancelled() => return self.end(Lost::GoAway(Reason::NO_ERROR)),
                () = control.leaving(), if !self.draining => {
                    self.draining = true;
                    self.connection.graceful_shutdown();
                }
                accepted = self.connection.accept() => return match accepted {
                    Some(Ok((request, response))) => Next::Stream(self.stream(request, response)),
                    Some(Err(error)) => self.end(Lost::from(&error)),
                    None => self.end(Lost::GoAway(Reason::NO_ERROR)),
                },
                () = poll_fn(|cx| self.keepalive.poll_expired(cx)) => {
                    return self.end(Lost::PingTimeout);
                }
            }
        }
    }

    fn end(&self, lost: Lost) -> Next {
        tracing::debug!(peer = %self.info.peer, %lost, "a client's connection ended");
        // Noted before the streams see their connection vanish with the driver.
        self.life.end(lost);
        Next::Ended
    }

    fn stream(
        &self,
        request: Request<RecvStream>,
        response: SendResponse<Payload>,
    ) -> Box<ServerStream> {
        let (head, body) = request.into_parts();
        Box::new(ServerStream {
            head,
            recv: RecvHalf::at_server(body, Arc::clone(&self.life)),
            respond: Respond::new(response, Arc::clone(&self.life)),
            connection: Arc::clone(&self.info),
        })
    }

    fn dispatch(&mut self, stream: ServerStream, handlers: &Handlers) {
        if !handlers.streams.wants(stream.head.uri.path()) {
            self.call(stream, handlers.unary.clone());
        } else if is_grpc(&stream) {
            handlers.streams.handle(stream);
        } else {
            refuse(stream.respond);
        }
    }

    fn call(&mut self, stream: ServerStream, routes: Routes) {
        while self.calls.try_join_next().is_some() {}
        if self.calls.len() >= self.max_calls {
            return stream.respond.reset(Reason::REFUSED_STREAM);
        }
        self.calls.spawn(async move {
            if let Err(lost) = unary::call(routes, stream).await {
                tracing::debug!(%lost, "a unary call ended early");
            }
        });
    }
}

/// gRPC is a POST with its content type, and a stream of anything else is not for a handler.
fn is_grpc(stream: &ServerStream) -> bool {
    let content_type = stream.head.headers.get(header::CONTENT_TYPE);
    let is_grpc = |value: &http::HeaderValue| value.as_bytes().starts_with(b"application/grpc");
    stream.head.method == Method::POST && content_type.is_some_and(is_grpc)
}

fn refuse(respond: Respond) {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
    // A client that is gone needs no refusal.
    let _ = respond.finish(response);
}
