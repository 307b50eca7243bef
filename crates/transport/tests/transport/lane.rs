//! Connections that move to the shard their first request names.

use http::{HeaderMap, HeaderValue};
use tidegate_transport::{Received, Server, Settings};
use tonic::service::Routes;

use crate::common::*;

fn lane(lane: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("tidegate-lane", HeaderValue::from_static(lane));
    headers
}

#[tokio::test]
async fn the_first_request_chooses_the_shard() {
    let mut server = TestServer::plain();
    let connection = server.connect().await;
    let (mut up, head) = connection.open(PATH, lane("2")).unwrap();
    let mut stream = server.stream().await;
    assert_eq!(stream.connection.shard, 2);
    assert_eq!(server.shards.get(2).tasks(), 1);

    // Bytes flow in both directions over there.
    let mut back = stream.respond.headers(HeaderMap::new()).unwrap();
    let (_, mut down) = soon(head).await.unwrap();
    up.send(payload(b"there")).unwrap();
    up.finish().unwrap();
    assert_eq!(
        soon(read_all(&mut stream.recv)).await,
        (b"there".to_vec(), Received::End)
    );
    back.send(payload(b"and back")).unwrap();
    back.finish().unwrap();
    assert_eq!(
        soon(read_all(&mut down)).await,
        (b"and back".to_vec(), Received::End)
    );

    // A later request moves nothing.
    let _second = connection.open(PATH, lane("1")).unwrap();
    assert_eq!(server.stream().await.connection.shard, 2);
}

#[tokio::test]
async fn a_lane_beyond_the_shards_and_nonsense_do_no_harm() {
    let mut server = TestServer::plain();
    for (text, shard) in [("4", 1), ("3", 0), ("x", 0), ("-1", 0)] {
        let connection = server.connect().await;
        let _stream = connection.open(PATH, lane(text)).unwrap();
        assert_eq!(server.stream().await.connection.shard, shard);
    }
}

#[tokio::test]
async fn a_moved_connection_keeps_its_pings_and_its_end() {
    let ping = tidegate_transport::Ping {
        interval: std::time::Duration::from_millis(30),
        timeout: std::time::Duration::from_secs(5),
    };
    let settings = Settings {
        ping: Some(ping),
        ..Settings::default()
    };
    let mut server = TestServer::start(
        Server {
            settings,
            ..Server::default()
        },
        Routes::default(),
    );
    let connection = server.connect().await;
    let _stream = connection.open(PATH, lane("1")).unwrap();
    let stream = server.stream().await;
    let still_open =
        tokio::time::timeout(std::time::Duration::from_millis(200), connection.closed());
    still_open.await.unwrap_err();
    stream.connection.connection.abort();
    soon(connection.closed()).await;
}
