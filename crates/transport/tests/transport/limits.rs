//! What bounds a connection costs one stream, never the connection.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tidegate_transport::{
    Endpoint, OpenError, Payload, Pool, PoolError, Received, Server, Settings,
};
use tonic::service::Routes;

use crate::common::*;

#[tokio::test]
async fn thousands_of_small_frames_into_a_stalled_stream_disturb_nobody() {
    let mut pair = Pair::open().await;
    let (mut up, mut down, mut back, mut recv) = open(&mut pair.server, &pair.connection).await;
    let flood = async {
        for _ in 0..10_000 {
            pair.up.capacity(1).await.unwrap();
            pair.up.send(payload(b"x")).unwrap();
            // One frame each: nothing is gathered in the library.
            tokio::task::yield_now().await;
        }
    };
    let echo = async {
        for _ in 0..100 {
            up.send(payload(b"ping")).unwrap();
            let Received::Data(data) = recv.recv().await else {
                panic!("lost")
            };
            recv.release(data.len());
            back.send(Payload::untracked(vec![data])).unwrap();
            let Received::Data(data) = down.recv().await else {
                panic!("lost")
            };
            down.release(data.len());
        }
    };
    soon(async { tokio::join!(flood, echo) }).await;

    pair.up.finish().unwrap();
    let (all, end) = soon(read_all(&mut pair.recv)).await;
    assert_eq!((all.len(), end), (10_000, Received::End));
}

#[tokio::test]
async fn a_thousand_opens_cancelled_at_once_disturb_nobody() {
    let mut pair = Pair::open().await;
    let opened: Vec<_> = (0..1_000)
        .map(|_| pair.connection.open(PATH, HeaderMap::new()).unwrap())
        .collect();
    drop(opened);
    pair.up.send(payload(b"still here")).unwrap();
    assert!(matches!(soon(pair.recv.recv()).await, Received::Data(_)));
    pair.up.finish().unwrap();
    assert_eq!(pair.connection.active_streams(), 1);

    let mut headers = HeaderMap::new();
    headers.insert("last", HeaderValue::from_static("yes"));
    let (_up, head) = pair.connection.open(PATH, headers).unwrap();
    let last = loop {
        let stream = pair.server.stream().await;
        if stream.head.headers.contains_key("last") {
            break stream;
        }
    };
    let _back = last.respond.headers(HeaderMap::new()).unwrap();
    soon(head).await.unwrap();
}

fn narrow(limit: u32) -> TestServer {
    let settings = Settings {
        max_concurrent_streams: limit,
        ..Settings::default()
    };
    TestServer::start(
        Server {
            settings,
            ..Server::default()
        },
        Routes::default(),
    )
}

#[tokio::test]
async fn an_open_beyond_the_peers_limit_fails_at_once() {
    let mut server = narrow(2);
    let connection = server.connect().await;
    assert_eq!(connection.max_streams(), 2);
    let first = open(&mut server, &connection).await;
    let _second = open(&mut server, &connection).await;
    let refused = connection.open(PATH, HeaderMap::new());
    assert_eq!(refused.map(drop), Err(OpenError::Full));
    assert!(!connection.has_room());
    drop(first);
    assert!(connection.has_room());
    open(&mut server, &connection).await;
}

#[tokio::test]
async fn a_pool_opens_another_connection_when_one_is_full() {
    let mut server = narrow(2);
    let pool = Pool::new(Endpoint::parse(&server.url()).unwrap(), 2);
    let mut held = Vec::new();
    for open in 1..=4 {
        held.push(soon(pool.open(PATH, HeaderMap::new())).await.unwrap());
        server.stream().await;
        assert_eq!(pool.connections(), if open <= 2 { 1 } else { 2 });
    }
    let refused = soon(pool.open(PATH, HeaderMap::new())).await;
    assert!(matches!(refused, Err(PoolError::Full(2))));
    assert_eq!(pool.active_streams(), 4);
}

#[tokio::test]
async fn a_pool_leaves_a_connection_that_was_told_to_go() {
    let mut first = TestServer::plain();
    let pool = Pool::new(Endpoint::parse(&first.url()).unwrap(), 1);
    let (mut up, _head) = soon(pool.open(PATH, HeaderMap::new())).await.unwrap();
    let mut stream = first.stream().await;
    stream.connection.connection.drain();
    // Until the GOAWAY has come streams are opened in vain, and told so.
    let elsewhere = async {
        loop {
            let (_up, head) = pool.open(PATH, HeaderMap::new()).await.unwrap();
            tokio::select! {
                arrived = first.streams.recv() => {
                    if arrived.unwrap().connection.peer != stream.connection.peer {
                        return;
                    }
                }
                lost = head => assert!(lost.is_err()),
            }
        }
    };
    soon(elsewhere).await;
    up.send(payload(b"lives on")).unwrap();
    assert!(matches!(soon(stream.recv.recv()).await, Received::Data(_)));
}

#[tokio::test]
async fn a_stalled_stream_leaves_the_window_to_others() {
    let mut pair = Pair::open().await;
    let mut stalled = Vec::new();
    for _ in 0..8 {
        let mut stream = open(&mut pair.server, &pair.connection).await;
        let filled = async {
            loop {
                let capacity = stream.0.capacity(64 * 1024).await.unwrap();
                let data = Bytes::from(vec![0; capacity]);
                stream.0.send(Payload::untracked(vec![data])).unwrap();
            }
        };
        tokio::time::timeout(Duration::from_millis(50), filled)
            .await
            .unwrap_err();
        stalled.push(stream);
    }
    let bulk = async {
        for _ in 0..256 {
            let mut left = 64 * 1024;
            while left > 0 {
                let capacity = pair.up.capacity(left).await.unwrap();
                let data = Bytes::from(vec![1; capacity]);
                pair.up.send(Payload::untracked(vec![data])).unwrap();
                left -= capacity;
            }
        }
        pair.up.finish().unwrap();
    };
    let (_, (all, end)) = soon(async { tokio::join!(bulk, read_all(&mut pair.recv)) }).await;
    assert_eq!((all.len(), end), (16 * 1024 * 1024, Received::End));
}

#[tokio::test]
async fn unread_bytes_of_cancelled_streams_are_credited_back() {
    let mut pair = Pair::open().await;
    for _ in 0..100 {
        let (mut up, _down, _back, recv) = open(&mut pair.server, &pair.connection).await;
        let data = Bytes::from(vec![0; 128 * 1024]);
        up.send(Payload::untracked(vec![data])).unwrap();
        drop((up, recv));
    }
    pair.up.send(payload(b"room")).unwrap();
    assert!(matches!(soon(pair.recv.recv()).await, Received::Data(_)));
}

#[tokio::test]
async fn many_segments_leave_as_one_frame() {
    let mut server = TestServer::plain();
    let mut builder = h2::client::Builder::new();
    builder.max_frame_size(1 << 20).initial_window_size(1 << 20);
    builder.initial_connection_window_size(1 << 24);
    let (request, _task) = raw_client(server.addr, &builder).await;
    let mut request = request.ready().await.unwrap();
    let (response, _send) = request.send_request(raw_request(), false).unwrap();
    let stream = server.stream().await;
    let mut back = stream.respond.headers(HeaderMap::new()).unwrap();
    let mut body = soon(response).await.unwrap().into_body();

    let piece = Bytes::from(vec![3; 60_000]);
    let head = Bytes::from_static(b"head");
    let segments = [&head, &piece, &head, &piece, &head, &piece, &head, &piece].map(Bytes::clone);
    let whole = segments.iter().map(Bytes::len).sum();
    let written = ledger();
    assert_eq!(soon(back.capacity(whole)).await, Ok(whole));
    back.send(Payload::new(segments.to_vec(), &written))
        .unwrap();
    let frame = soon(body.data()).await.unwrap().unwrap();
    assert_eq!(frame.len(), whole);
    soon(std::future::poll_fn(|cx| written.poll_empty(cx))).await;
    assert!(!written.is_discarded());
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Both ends are in this process, so each figure is twice what one side holds.
#[tokio::test]
async fn what_is_idle_costs_little() {
    let mut server = TestServer::plain();
    let mut connections = vec![server.connect().await];
    let before = resident();
    for _ in 0..400 {
        connections.push(server.connect().await);
    }
    let connection = (resident() - before) / 400;
    assert!(
        connection < 2 * 32 * 1024,
        "{connection} bytes for both ends of a connection"
    );

    let before = resident();
    let mut streams = Vec::new();
    for _ in 0..4_000 {
        streams.push(open(&mut server, &connections[0]).await);
    }
    let stream = (resident() - before) / 4_000;
    assert!(
        stream < 2 * 2 * 1024,
        "{stream} bytes for both ends of a stream"
    );
    println!("idle, both ends: {connection} bytes a connection, {stream} bytes a stream");
}
