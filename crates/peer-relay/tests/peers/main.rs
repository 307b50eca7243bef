//! Asking over real sockets, an owner that is written frame by frame.
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the answer")]

mod connections;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tidegate_bridge::{FrameEnd, Opened};
use tidegate_lifecycle::id::{ChannelId, GatewayId, Generation, SandboxName, SessionId};
use tidegate_lifecycle::{Capabilities, HalfClose, Origin, Reason, Target};
use tidegate_peer_relay::{PeerCall, PeerSettings, Peers, Unopened};
use tidegate_testkit::raw_h2::{Received, Server};
use tidegate_testkit::wait::{self, GENEROUS};
use tidegate_transport::Buffered;
use tidegate_wire::frame::{Frame, FrameLimit, FrameReader, PeerInit, Relayed};
use tidegate_wire::metadata;

fn call() -> PeerCall {
    PeerCall {
        init: PeerInit {
            sandbox: SandboxName::parse("known").unwrap(),
            channel: ChannelId::new("c"),
            target: Target::tcp("localhost", 80).unwrap(),
            requester: GatewayId::new("gw1"),
            capabilities: Capabilities::STREAM,
            session: Some((SessionId::new("s"), Generation::new(7))),
            command: Relayed::default(),
        },
        headers: HeaderMap::new(),
        buffered: Buffered::new(),
    }
}

fn plaintext() -> PeerSettings {
    PeerSettings {
        plaintext: true,
        ..PeerSettings::default()
    }
}

fn url(server: &Server) -> String {
    format!("http://{}", server.address().unwrap())
}

async fn ask(peers: &Peers, url: &str) -> Result<(FrameEnd, Opened), Unopened> {
    let asked = peers.open::<Bytes>(url, 0, call());
    wait::within(GENEROUS, "an answer", asked).await
}

#[tokio::test]
async fn an_owner_is_told_who_asks_for_what_and_its_answer_is_an_end() {
    let server = Server::bind().await.unwrap();
    let (peers, url) = (Peers::new(plaintext()), url(&server));
    let owner = async {
        let mut connection = server.accept().await.unwrap();
        let mut incoming = connection.call().await;
        assert_eq!(incoming.path(), metadata::PEER_RELAY);
        let named = metadata::peer_replica(&incoming.head.headers);
        assert_eq!(named, Some(GatewayId::new("gw1")));
        let Received::Message(message) = incoming.inbox.next().await else {
            panic!("no message")
        };
        let mut reader = FrameReader::new(FrameLimit::Legacy);
        reader.push(tidegate_testkit::raw_h2::grpc::frame_bytes(0, &message));
        let Ok(Some(Frame::Init(init))) = reader.next() else {
            panic!("no init")
        };
        assert_eq!(PeerInit::parse(&init), Ok(call().init));
        let mut headers = HeaderMap::new();
        let ours = Capabilities::STREAM;
        metadata::set_capabilities(&mut headers, metadata::CAPABILITIES, ours);
        let halves = incoming.accept(headers).unwrap();
        (connection, halves)
    };
    let (answer, _owner) = tokio::join!(ask(&peers, &url), owner);
    let (_end, opened) = answer.unwrap();
    assert_eq!(opened.half_close, HalfClose::Explicit);
    assert!(opened.by_owner);
    assert_eq!((peers.connections(), peers.streams()), (1, 1));
}

#[tokio::test]
async fn a_released_owner_says_in_its_own_words_what_it_can() {
    let server = Server::bind().await.unwrap();
    let (peers, url) = (Peers::new(plaintext()), url(&server));
    for (said, expected) in [
        (None, HalfClose::Unsupported),
        (Some("v1"), HalfClose::Response),
    ] {
        let peers = Peers::new(plaintext());
        let owner = async {
            let mut connection = server.accept().await.unwrap();
            let mut headers = HeaderMap::new();
            if let Some(said) = said {
                headers.insert(metadata::PEER_HALF_CLOSE, said.parse().unwrap());
            }
            let halves = connection.call().await.accept(headers).unwrap();
            (connection, halves)
        };
        let (answer, _owner) = tokio::join!(ask(&peers, &url), owner);
        assert_eq!(answer.unwrap().1.half_close, expected);
    }
    assert_eq!(
        peers.connections(),
        0,
        "the pools of others are not its own"
    );
}

#[tokio::test]
async fn an_answer_is_passed_on_and_its_connection_is_kept() {
    let server = Server::bind().await.unwrap();
    let (peers, url) = (Peers::new(plaintext()), url(&server));
    let owner = async {
        let mut connection = server.accept().await.unwrap();
        for code in [
            tonic::Code::ResourceExhausted,
            tonic::Code::DeadlineExceeded,
        ] {
            connection.call().await.refuse(code).unwrap();
        }
        connection
    };
    let asked = async {
        for code in [8, 4] {
            let Err(Unopened::Refused(end)) = ask(&peers, &url).await else {
                panic!("an answer was expected")
            };
            let Reason::Foreign(foreign) = end.reason else {
                panic!("a code was expected, not {end}")
            };
            assert_eq!((foreign.value(), end.origin), (code, Origin::Peer));
        }
    };
    let ((), _owner) = tokio::join!(asked, owner);
    assert_eq!(peers.connections(), 1);
}

#[tokio::test]
async fn an_owner_that_is_lost_before_it_answers_is_unreached() {
    let server = Server::bind().await.unwrap();
    let (peers, url) = (Peers::new(plaintext()), url(&server));
    let owner = async {
        let mut connection = server.accept().await.unwrap();
        let incoming = connection.call().await;
        drop((incoming, connection));
    };
    let (answer, ()) = tokio::join!(ask(&peers, &url), owner);
    lost(answer);
}

#[tokio::test]
async fn an_owner_that_does_not_answer_in_time_is_unreached() {
    let server = Server::bind().await.unwrap();
    let url = url(&server);
    let peers = Peers::new(PeerSettings {
        answer: Duration::from_millis(100),
        ..plaintext()
    });
    let owner = async {
        let mut connection = server.accept().await.unwrap();
        let mut incoming = connection.call().await;
        while let Received::Message(_) = incoming.inbox.next().await {}
    };
    let (answer, ()) = tokio::join!(ask(&peers, &url), owner);
    lost(answer);
}

#[tokio::test]
async fn nobody_at_the_address_is_unreached_and_a_bad_address_is_a_setting() {
    let peers = Peers::new(plaintext());
    lost(ask(&peers, "http://127.0.0.1:1").await);
    for bad in ["gw0:7070", "ftp://gw0"] {
        let Err(Unopened::Unable(end)) = ask(&peers, bad).await else {
            panic!("it cannot be asked")
        };
        assert_eq!(end.reason, Reason::PeerUnconfigured, "{end}");
    }
    let strict = Peers::new(PeerSettings::default());
    let Err(Unopened::Unable(end)) = ask(&strict, "http://127.0.0.1:1").await else {
        panic!("plaintext is not allowed")
    };
    assert_eq!(end.reason, Reason::PeerUnconfigured);
}

#[tokio::test]
async fn a_call_that_is_given_up_is_reset() {
    let server = Server::bind().await.unwrap();
    let (peers, url) = (Arc::new(Peers::new(plaintext())), url(&server));
    let owner = async {
        let mut connection = server.accept().await.unwrap();
        (connection.call().await, connection)
    };
    let (mut incoming, _connection) = tokio::select! {
        _ = ask(&peers, &url) => panic!("nobody answered"),
        incoming = owner => incoming,
    };
    let end = async {
        loop {
            match incoming.inbox.next().await {
                Received::Message(_) => {}
                end => return end,
            }
        }
    };
    let end = wait::within(GENEROUS, "the reset", end).await;
    assert!(matches!(end, Received::Lost(_)), "{end:?}");
}

fn lost(answer: Result<(FrameEnd, Opened), Unopened>) {
    match answer {
        Err(Unopened::Unreached(end)) => {
            assert_eq!((end.origin, end.reason), (Origin::Peer, Reason::OwnerLost));
        }
        other => panic!("the owner cannot be reached: {other:?}"),
    }
}
