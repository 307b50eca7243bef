//! tonic beside the streams, on the same connection.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Response};
use tidegate_transport::{ConnectionInfo, Reason, Received, Server, Settings};
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{NamedService, UnaryService};
use tonic::service::Routes;
use tonic::{Code, Status};
use tower_service::Service;

use crate::common::*;

/// Answers with the request, or, asked for it, with an error or never.
#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "test.Echo";
}

impl Service<Request<Body>> for Echo {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut server = tonic::server::Grpc::new(Raw).max_decoding_message_size(64 << 20);
        Box::pin(async move { Ok(server.unary(Say, request).await) })
    }
}

struct Say;

impl UnaryService<Bytes> for Say {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        Box::pin(async move {
            assert!(request.extensions().get::<Arc<ConnectionInfo>>().is_some());
            match &request.get_ref()[..] {
                b"fail" => Err(Status::not_found("nothing like it")),
                b"never" => std::future::pending().await,
                _ => Ok(tonic::Response::new(request.into_inner())),
            }
        })
    }
}

/// Messages that are their bytes.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, dst: &mut EncodeBuf<'_>) -> Result<(), Status> {
        dst.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, src: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(src.copy_to_bytes(src.remaining())))
    }
}

fn echo_server(settings: Settings) -> TestServer {
    TestServer::start(
        Server {
            settings,
            ..Server::default()
        },
        Routes::new(Echo),
    )
}

async fn say<T>(service: T, message: Bytes) -> Result<Bytes, Status>
where
    T: tonic::client::GrpcService<Body>,
    T::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <T::ResponseBody as http_body::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut client = Grpc::new(service).max_decoding_message_size(64 << 20);
    client
        .ready()
        .await
        .map_err(|_| Status::unknown("not ready"))?;
    let path = PathAndQuery::from_static("/test.Echo/Say");
    client
        .unary(tonic::Request::new(message), path, Raw)
        .await
        .map(tonic::Response::into_inner)
}

#[tokio::test]
async fn a_call_beside_a_stream() {
    let mut server = echo_server(Settings::default());
    let connection = server.connect().await;
    let (mut up, _down, _back, mut recv) = open(&mut server, &connection).await;
    let answer = soon(say(connection.clone(), Bytes::from_static(b"hello")))
        .await
        .unwrap();
    assert_eq!(answer, "hello");
    let error = soon(say(connection.clone(), Bytes::from_static(b"fail")))
        .await
        .unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (Code::NotFound, "nothing like it")
    );
    up.send(payload(b"undisturbed")).unwrap();
    assert!(matches!(soon(recv.recv()).await, Received::Data(_)));
    assert_eq!(connection.active_streams(), 1);
}

/// gRPC's C core takes a DATA frame that ends a response for a stream that was removed, status or not.
#[tokio::test]
async fn a_status_without_an_answer_is_nothing_but_headers() {
    let server = echo_server(Settings::default());
    let (request, _task) = raw_client(server.addr, &h2::client::Builder::new()).await;
    let mut request = request.ready().await.unwrap();
    let call = Request::post("http://localhost/test.Echo/Say")
        .header("content-type", "application/grpc")
        .body(())
        .unwrap();
    let (response, mut send) = request.send_request(call, false).unwrap();
    let message = Bytes::from_static(b"\0\0\0\0\x04fail");
    send.send_data(message, true).unwrap();
    let (head, mut body) = soon(response).await.unwrap().into_parts();
    assert_eq!(head.headers["grpc-status"], "5");
    assert!(soon(body.data()).await.is_none(), "no frame follows");
}

#[tokio::test]
async fn a_large_call_flows() {
    let server = echo_server(Settings::default());
    let large = Bytes::from(vec![7; 5 << 20]);
    let answer = soon(say(server.connect().await, large.clone()))
        .await
        .unwrap();
    assert_eq!(answer, large);
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_at_the_server() {
    let server = echo_server(Settings {
        max_unary_calls: 1,
        ..Settings::default()
    });
    let connection = server.connect().await;
    let call = say(connection.clone(), Bytes::from_static(b"never"));
    tokio::time::timeout(std::time::Duration::from_millis(100), call)
        .await
        .unwrap_err();
    // The only place is free again.
    soon(async {
        while say(connection.clone(), Bytes::from_static(b"hello"))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn calls_beyond_the_limit_are_refused() {
    let server = echo_server(Settings {
        max_unary_calls: 0,
        ..Settings::default()
    });
    let (request, _task) = raw_client(server.addr, &h2::client::Builder::new()).await;
    let mut request = request.ready().await.unwrap();
    let call = Request::post("http://localhost/test.Echo/Say")
        .body(())
        .unwrap();
    let (response, _) = request.send_request(call, true).unwrap();
    assert_eq!(
        soon(response).await.unwrap_err().reason(),
        Some(Reason::REFUSED_STREAM)
    );
}

#[tokio::test]
async fn an_unknown_method_is_unimplemented_and_a_browser_is_told_off() {
    let server = echo_server(Settings::default());
    let connection = server.connect().await;
    let mut client = Grpc::new(connection.clone());
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/test.Other/Say");
    let error = client
        .unary(tonic::Request::new(Bytes::new()), path, Raw)
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::Unimplemented);

    let (request, _task) = raw_client(server.addr, &h2::client::Builder::new()).await;
    let mut request = request.ready().await.unwrap();
    let get = Request::get(format!("http://localhost{PATH}"))
        .body(())
        .unwrap();
    let (response, _) = request.send_request(get, true).unwrap();
    assert_eq!(soon(response).await.unwrap().status(), 415);
}

#[tokio::test]
async fn a_server_that_shuts_down_lets_calls_finish() {
    let server = echo_server(Settings::default());
    let connection = server.connect().await;
    assert!(
        soon(say(connection.clone(), Bytes::from_static(b"first")))
            .await
            .is_ok()
    );
    server.shutdown.cancel();
    soon(connection.closed()).await;
    let error = soon(say(connection, Bytes::from_static(b"second")))
        .await
        .unwrap_err();
    assert_ne!(error.code(), Code::Ok);
    let _headers = HeaderMap::new();
}
