//! Every way a stream can end is told apart: only an end that was said is an end.

use std::io::ErrorKind;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderValue, Response};
use tidegate_transport::{Endpoint, Lost, Payload, Ping, Received, ServerStream, Settings};

use crate::common::*;

fn same(endpoint: Endpoint) -> Endpoint {
    endpoint
}

#[tokio::test]
async fn ends_are_said_in_both_directions() {
    let mut pair = Pair::open().await;
    pair.up.send(payload(b"question")).unwrap();
    pair.up.finish().unwrap();
    assert_eq!(
        soon(read_all(&mut pair.recv)).await,
        (b"question".to_vec(), Received::End)
    );

    pair.back.send(payload(b"answer")).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    pair.back.send_trailers(trailers.clone()).unwrap();
    let (answer, end) = soon(read_all(&mut pair.down)).await;
    assert_eq!(
        (answer, end),
        (b"answer".to_vec(), Received::Trailers(trailers.clone()))
    );
    assert_eq!(
        soon(pair.down.recv()).await,
        Received::Trailers(trailers),
        "the end stays"
    );
}

#[tokio::test]
async fn the_last_bytes_and_the_end_of_a_request_are_one_frame() {
    let (mut server, connection) = RawServer::start(h2::server::Builder::new(), same).await;
    let (mut up, _head) = connection.open(PATH, HeaderMap::new()).unwrap();
    up.send(payload(b"first")).unwrap();
    up.finish_with(payload(b"last")).unwrap();
    let (request, _respond) = server.request().await;
    let mut body = request.into_body();
    assert_eq!(soon(body.data()).await.unwrap().unwrap(), "first");
    assert!(!body.is_end_stream());
    assert_eq!(soon(body.data()).await.unwrap().unwrap(), "last");
    assert!(body.is_end_stream(), "no empty frame follows");
}

#[tokio::test]
async fn a_response_of_headers_only_ends_at_once() {
    let mut server = TestServer::plain();
    let connection = server.connect().await;
    let (_up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let ServerStream { respond, .. } = server.stream().await;
    let mut headers = HeaderMap::new();
    headers.insert("grpc-status", HeaderValue::from_static("5"));
    respond.trailers_only(headers).unwrap();
    let (parts, mut down) = soon(head).await.unwrap();
    assert_eq!(parts.headers["grpc-status"], "5");
    assert_eq!(parts.headers["content-type"], "application/grpc");
    assert_eq!(soon(down.recv()).await, Received::End);
}

/// A raw client sends ten frames and then `end`s the request; what does our server see?
async fn request_reset(reason: Reason) -> Lost {
    let mut server = TestServer::plain();
    let (request, _task) = raw_client(server.addr, &h2::client::Builder::new()).await;
    let mut request = request.ready().await.unwrap();
    let (_response, mut send) = request.send_request(raw_request(), false).unwrap();
    for _ in 0..10 {
        send.send_data(Bytes::from_static(b"data"), false).unwrap();
    }
    let mut stream = server.stream().await;
    assert!(matches!(soon(stream.recv.recv()).await, Received::Data(_)));
    send.send_reset(reason);
    lost(&mut stream.recv).await
}

#[tokio::test]
async fn a_reset_request_is_lost_whatever_its_code() {
    for reason in [Reason::NO_ERROR, Reason::CANCEL, Reason::INTERNAL_ERROR] {
        assert_eq!(request_reset(reason).await, Lost::Reset(reason));
    }
}

#[tokio::test]
async fn a_reset_response_is_lost_whatever_its_code() {
    for reason in [Reason::NO_ERROR, Reason::CANCEL, Reason::INTERNAL_ERROR] {
        let (mut server, connection) = RawServer::start(h2::server::Builder::new(), same).await;
        let (_up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
        let (_request, mut respond) = server.request().await;
        let mut send = respond.send_response(Response::new(()), false).unwrap();
        send.send_data(Bytes::from_static(b"data"), false).unwrap();
        let (_, mut down) = soon(head).await.unwrap();
        assert!(matches!(soon(down.recv()).await, Received::Data(_)));
        send.send_reset(reason);
        assert_eq!(lost(&mut down).await, Lost::Reset(reason));
    }
}

#[tokio::test]
async fn a_killed_connection_is_broken() {
    let (mut server, connection) = RawServer::start(h2::server::Builder::new(), same).await;
    let (mut up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let (_request, mut respond) = server.request().await;
    let _send = respond.send_response(Response::new(()), false).unwrap();
    let (_, mut down) = soon(head).await.unwrap();
    server.order(Control::Kill).await;
    assert!(matches!(lost(&mut down).await, Lost::Broken(_)));
    assert!(matches!(soon(up.closed()).await, Lost::Broken(_)));
    soon(connection.closed()).await;
    assert!(connection.open(PATH, HeaderMap::new()).is_err());
}

#[tokio::test]
async fn goaway_loses_what_it_names_and_refuses_more() {
    let (mut server, connection) = RawServer::start(h2::server::Builder::new(), same).await;
    let (_up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let (_request, mut respond) = server.request().await;
    let _send = respond.send_response(Response::new(()), false).unwrap();
    let (_, mut down) = soon(head).await.unwrap();
    server
        .order(Control::AbruptShutdown(Reason::ENHANCE_YOUR_CALM))
        .await;
    assert_eq!(
        lost(&mut down).await,
        Lost::GoAway(Reason::ENHANCE_YOUR_CALM)
    );
    assert!(connection.open(PATH, HeaderMap::new()).is_err());
    assert!(!connection.has_room());
}

#[tokio::test]
async fn a_graceful_goaway_is_noticed_before_the_next_open() {
    let (mut server, connection) = RawServer::start(h2::server::Builder::new(), same).await;
    let (_up, _head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let (_request, _respond) = server.request().await;
    assert!(connection.has_room());
    server.order(Control::GracefulShutdown).await;
    soon(async {
        while connection.has_room() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(connection.active_streams(), 1);
}

#[tokio::test]
async fn a_graceful_goaway_lets_streams_finish() {
    let mut pair = Pair::open().await;
    pair.server.shutdown.cancel();
    pair.up.send(payload(b"late")).unwrap();
    pair.up.finish().unwrap();
    assert_eq!(
        soon(read_all(&mut pair.recv)).await,
        (b"late".to_vec(), Received::End)
    );
    pair.back.send_trailers(HeaderMap::new()).unwrap();
    assert!(matches!(
        soon(pair.down.recv()).await,
        Received::Trailers(_)
    ));
    soon(pair.connection.closed()).await;
    assert!(!pair.connection.is_open());
}

#[tokio::test]
async fn an_aborted_server_breaks_every_stream_at_once() {
    let mut pair = Pair::open().await;
    pair.server.abort.cancel();
    assert!(matches!(
        lost(&mut pair.down).await,
        Lost::Broken(_) | Lost::GoAway(_)
    ));
    assert!(matches!(lost(&mut pair.recv).await, Lost::Broken(_)));
}

#[tokio::test]
async fn halves_dropped_without_an_end_cancel() {
    let mut pair = Pair::open().await;
    drop(pair.up);
    assert_eq!(lost(&mut pair.recv).await, Lost::Reset(Reason::CANCEL));

    let mut pair = Pair::open().await;
    drop(pair.down);
    assert_eq!(lost(&mut pair.recv).await, Lost::Reset(Reason::CANCEL));

    let mut pair = Pair::open().await;
    drop(pair.back);
    assert_eq!(lost(&mut pair.down).await, Lost::Reset(Reason::CANCEL));
}

#[tokio::test]
async fn an_unanswered_stream_is_cancelled_by_either_side() {
    let mut server = TestServer::plain();
    let connection = server.connect().await;
    let (up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    drop(server.stream().await);
    assert_eq!(soon(head).await.unwrap_err(), Lost::Reset(Reason::CANCEL));
    drop(up);

    let (_up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let mut stream = server.stream().await;
    drop(head);
    assert_eq!(
        soon(stream.respond.closed()).await,
        Lost::Reset(Reason::CANCEL)
    );
}

#[tokio::test]
async fn a_server_that_answered_stops_the_client_with_no_error() {
    let mut pair = Pair::open().await;
    pair.back.send_trailers(HeaderMap::new()).unwrap();
    drop((pair.back, pair.recv));
    assert!(matches!(
        soon(pair.down.recv()).await,
        Received::Trailers(_)
    ));
    assert_eq!(soon(pair.up.closed()).await, Lost::Reset(Reason::NO_ERROR));
}

#[tokio::test]
async fn a_reset_after_our_end_is_noticed() {
    let mut pair = Pair::open().await;
    pair.up.finish().unwrap();
    assert_eq!(soon(pair.recv.recv()).await, Received::End);
    pair.back.reset(Reason::CANCEL);
    assert_eq!(soon(pair.up.closed()).await, Lost::Reset(Reason::CANCEL));

    let mut pair = Pair::open().await;
    pair.back.send_trailers(HeaderMap::new()).unwrap();
    assert!(matches!(
        soon(pair.down.recv()).await,
        Received::Trailers(_)
    ));
    pair.up.reset(Reason::CANCEL);
    assert_eq!(soon(pair.back.closed()).await, Lost::Reset(Reason::CANCEL));
}

#[tokio::test]
async fn an_end_that_was_seen_stays_an_end_when_a_reset_follows() {
    let mut pair = Pair::open().await;
    pair.up.send(payload(b"all of it")).unwrap();
    pair.up.finish().unwrap();
    assert!(matches!(soon(pair.recv.recv()).await, Received::Data(_)));
    pair.up.reset(Reason::CANCEL);
    assert_eq!(soon(pair.back.closed()).await, Lost::Reset(Reason::CANCEL));
    assert_eq!(soon(pair.recv.recv()).await, Received::End);
}

/// Writes until the peer's credit is used up.
async fn block(half: &mut tidegate_transport::SendHalf) {
    let filled = async {
        loop {
            let capacity = half.capacity(64 * 1024).await.unwrap();
            half.send(Payload::untracked(vec![Bytes::from(vec![0; capacity])]))
                .unwrap();
        }
    };
    tokio::time::timeout(Duration::from_millis(300), filled)
        .await
        .unwrap_err();
}

#[tokio::test]
async fn an_abort_gets_through_a_blocked_stream() {
    let mut pair = Pair::open().await;
    block(&mut pair.up).await;
    pair.up.reset(Reason::CANCEL);
    assert_eq!(lost(&mut pair.recv).await, Lost::Reset(Reason::CANCEL));

    let mut pair = Pair::open().await;
    block(&mut pair.back).await;
    let discarded = ledger();
    pair.back
        .send(Payload::new(
            vec![Bytes::from_static(b"beyond")],
            &discarded,
        ))
        .unwrap();
    pair.up.reset(Reason::CANCEL);
    assert_eq!(soon(pair.back.closed()).await, Lost::Reset(Reason::CANCEL));
    soon(std::future::poll_fn(|cx| discarded.poll_empty(cx))).await;
    assert!(
        discarded.is_discarded(),
        "not written, and not taken for written"
    );
}

fn impatient(endpoint: Endpoint) -> Endpoint {
    let ping = Ping {
        interval: Duration::from_millis(50),
        timeout: Duration::from_millis(100),
    };
    endpoint.with_settings(Settings {
        ping: Some(ping),
        ..Settings::default()
    })
}

#[tokio::test]
async fn a_silent_peer_is_taken_for_dead_by_every_stream() {
    let (mut server, connection) = RawServer::start(h2::server::Builder::new(), impatient).await;
    let (mut up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let (_request, mut respond) = server.request().await;
    let _send = respond.send_response(Response::new(()), false).unwrap();
    let (_, mut down) = soon(head).await.unwrap();
    let (_other, other) = connection.open(PATH, HeaderMap::new()).unwrap();
    server.order(Control::Freeze).await;
    assert_eq!(lost(&mut down).await, Lost::PingTimeout);
    assert_eq!(soon(up.closed()).await, Lost::PingTimeout);
    assert_eq!(soon(other).await.unwrap_err(), Lost::PingTimeout);
    assert_eq!(soon(connection.closed()).await, Lost::PingTimeout);
}

/// A server made by hand that answers no PING but goes on sending something.
#[tokio::test]
async fn a_peer_that_still_sends_is_alive() {
    use tokio::io::AsyncWriteExt;
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const WINDOW_UPDATE: [u8; 13] = [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1];

    let listener = tidegate_transport::listen(([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let endpoint = impatient(Endpoint::parse(&url).unwrap());
    let (connected, (mut socket, _)) = tokio::join!(endpoint.connect(), async {
        let (mut socket, peer) = listener.accept().await;
        socket.write_all(&SETTINGS).await.unwrap();
        (socket, peer)
    });
    let connection = connected.unwrap();
    let mut ticks = tokio::time::interval(Duration::from_millis(40));
    for _ in 0..15 {
        ticks.tick().await;
        socket.write_all(&WINDOW_UPDATE).await.unwrap();
        assert!(connection.is_open());
    }
    assert_eq!(soon(connection.closed()).await, Lost::PingTimeout);
}

#[tokio::test]
async fn a_server_that_hangs_up_is_not_connected_to() {
    let listener = tidegate_transport::listen(([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let endpoint = Endpoint::parse(&url).unwrap();
    let (connected, _) = tokio::join!(endpoint.connect(), async {
        drop(listener.accept().await);
    });
    let error = connected.unwrap_err();
    assert!(
        matches!(error, tidegate_transport::ConnectError::Http2 { .. }),
        "{error}"
    );

    drop(listener);
    let error = endpoint.connect().await.unwrap_err();
    let tidegate_transport::ConnectError::Connect { source, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(source.kind(), ErrorKind::ConnectionRefused);
}

/// A bug met by one stream is the end of that stream.
#[tokio::test]
async fn a_stream_whose_task_panics_is_lost_and_alone() {
    let mut server = TestServer::plain();
    let connection = server.connect().await;
    let (_doomed_up, doomed_head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let doomed = server.stream().await;
    let (mut up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let mut stream = server.stream().await;
    let home = server.shards.get(doomed.connection.shard);
    home.spawn("doomed", async move {
        let _held = doomed;
        panic!("a bug, as this test wants it");
    });
    assert!(soon(doomed_head).await.is_err());

    let mut back = stream.respond.headers(HeaderMap::new()).unwrap();
    let (_, mut down) = soon(head).await.unwrap();
    up.send(payload(b"beside")).unwrap();
    up.finish().unwrap();
    let heard = soon(read_all(&mut stream.recv)).await;
    assert_eq!(heard, (b"beside".to_vec(), Received::End));
    back.finish().unwrap();
    assert_eq!(soon(down.recv()).await, Received::End);
    let _next = connection.open(PATH, HeaderMap::new()).unwrap();
    server.stream().await;
}
