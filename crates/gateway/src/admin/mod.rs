//! The admin address: whether the gateway lives, whether it serves, and its metrics, over HTTP/1.

mod scrape;

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_transport::Listener;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::state::State;

pub(crate) use scrape::Scrape;

/// What the Prometheus client library writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Serves the admin address. Dropping it ends every connection.
pub(crate) async fn serve(state: Arc<State>, scrape: Arc<Scrape>, listener: Listener) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await;
        while connections.try_join_next().is_some() {}
        let (state, scrape) = (Arc::clone(&state), Arc::clone(&scrape));
        connections.spawn(connection(state, scrape, stream));
    }
}

async fn connection(state: Arc<State>, scrape: Arc<Scrape>, stream: TcpStream) {
    let service = service_fn(|request: Request<Incoming>| {
        let answer = answer(&state, &scrape, request.method(), request.uri().path());
        std::future::ready(Ok::<_, Infallible>(answer))
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = connection.await {
        tracing::debug!(%error, "an admin connection failed");
    }
}

fn answer(state: &State, scrape: &Scrape, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return text(StatusCode::METHOD_NOT_ALLOWED, "only GET is served here\n");
    }
    match path {
        "/healthz" => text(StatusCode::OK, "ok\n"),
        "/readyz" if state.draining.is_cancelled() => text(
            StatusCode::SERVICE_UNAVAILABLE,
            "the gateway is shutting down\n",
        ),
        "/readyz" => text(StatusCode::OK, "ok\n"),
        "/metrics" => metrics(scrape.read(state)),
        _ => text(
            StatusCode::NOT_FOUND,
            "there are /healthz, /readyz and /metrics\n",
        ),
    }
}

fn metrics(page: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(page));
    let kind = header::HeaderValue::from_static(OPEN_METRICS);
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

fn text(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    let kind = header::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
