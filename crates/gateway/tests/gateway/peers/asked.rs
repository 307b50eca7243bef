//! What a gateway answers whom another one asks: raw calls of PeerRelay.

use http::HeaderMap;
use tidegate_lifecycle::id::{ChannelId, GatewayId, Generation, SessionId};
use tidegate_lifecycle::{Capabilities, Target};
use tidegate_testkit::messages::{ForwardFrame, RelayFrame, RelayPayload};
use tidegate_testkit::raw_h2::Client;
use tidegate_wire::frame::{PeerInit, Relayed};
use tidegate_wire::metadata::{self, PEER_RELAY};
use tonic::Code;

use super::Pair;
use crate::common::{Answer, Forward, Running, Supervisor, is, name};

fn request(session: Option<(&str, u64)>) -> PeerInit {
    PeerInit {
        sandbox: name("known"),
        channel: ChannelId::new("c"),
        target: Target::tcp("localhost", 80).unwrap(),
        requester: GatewayId::new("gw1"),
        capabilities: Capabilities::STREAM,
        session: session.map(|(id, at)| (SessionId::new(id), Generation::new(at))),
        command: Relayed::default(),
    }
}

/// A call of PeerRelay, whose frames are those of ForwardTcp but for the first.
async fn ask(gateway: &Running, init: PeerInit, replica: &str) -> Forward {
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut headers = HeaderMap::new();
    metadata::set_peer_replica(&mut headers, &GatewayId::new(replica));
    let mut call = client.open(PEER_RELAY, headers).await.unwrap();
    call.outbox.send(init.encode()).await.unwrap();
    // The connection lives as long as its streams are read.
    std::mem::forget(client);
    Forward {
        outbox: call.outbox,
        answer: Answer::Waiting(call.response),
    }
}

#[tokio::test]
async fn whoever_asks_in_anothers_name_is_refused() {
    let pair = Pair::start().await;
    let _supervisor = pair.supervisor().await;
    let outcome = ask(&pair.owner, request(None), "gw7").await.outcome().await;
    is(&outcome, Code::PermissionDenied, "NOT_PERMITTED");
    pair.rests().await;
}

#[tokio::test]
async fn a_gateway_that_is_asked_does_not_ask_on_and_names_who_has_it() {
    let pair = Pair::start().await;
    let _supervisor = pair.supervisor().await;
    let outcome = ask(&pair.asks, request(None), "gw1").await.outcome().await;
    is(&outcome, Code::FailedPrecondition, "STALE_OWNER");
    assert!(
        outcome.message.contains("the gateway gw0 has one"),
        "{outcome:?}"
    );
    pair.rests().await;
}

#[tokio::test]
async fn a_newer_session_than_its_own_is_not_served_and_an_older_one_is() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let newer = request(Some(("s", u64::MAX)));
    let outcome = ask(&pair.owner, newer, "gw1").await.outcome().await;
    is(&outcome, Code::FailedPrecondition, "STALE_OWNER");
    let older = request(Some(("s", 0)));
    let mut peer = ask(&pair.owner, older, "gw1").await;
    let mut relay = supervisor.serve().await;
    relay.headers().await;
    carries(&mut peer, &mut relay).await;
    drop((peer, relay));
    pair.rests().await;
}

#[tokio::test]
async fn a_released_gateway_is_served_and_told_of_half_close_in_its_own_words() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    for (names, half_close) in [(vec![], None), (vec!["stream-half-close-v1"], Some("v1"))] {
        let capabilities = Capabilities::from_names(names);
        let released = PeerInit {
            capabilities,
            ..request(None)
        };
        let mut peer = ask(&pair.owner, released, "gw1").await;
        let mut relay = supervisor.serve().await;
        relay.headers().await;
        let headers = peer.headers().await;
        let said = headers.get(metadata::PEER_HALF_CLOSE);
        assert_eq!(said.map(|value| value.to_str().unwrap()), half_close);
        carries(&mut peer, &mut relay).await;
        peer.outbox.finish().unwrap();
        assert_eq!(
            relay.next().await,
            RelayPayload::HalfClose(Default::default())
        );
        relay.send(RelayFrame::half_close()).await;
        relay.outbox.finish().unwrap();
        assert!(peer.outcome().await.is_ok());
    }
    pair.rests().await;
}

#[tokio::test]
async fn an_owner_keeps_the_deadline_that_it_was_told() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = Client::connect(pair.owner.addr).await.unwrap();
    let mut headers = HeaderMap::new();
    metadata::set_peer_replica(&mut headers, &GatewayId::new("gw1"));
    metadata::set_timeout(&mut headers, std::time::Duration::from_millis(300));
    let mut call = client.open(PEER_RELAY, headers).await.unwrap();
    call.outbox.send(request(None).encode()).await.unwrap();
    let relay = supervisor.serve().await;
    let outcome = relay.answer.outcome().await;
    is(&outcome, Code::DeadlineExceeded, "OPERATION_TIMEOUT");
    pair.rests().await;
}

#[tokio::test]
async fn a_first_message_that_is_none_is_refused() {
    let pair = Pair::start().await;
    let client = Client::connect(pair.owner.addr).await.unwrap();
    let mut call = client.open(PEER_RELAY, HeaderMap::new()).await.unwrap();
    call.outbox.message(&ForwardFrame::data("x")).await.unwrap();
    let outcome = Answer::Waiting(call.response).outcome().await;
    is(&outcome, Code::InvalidArgument, "PROTOCOL_VIOLATION");
    assert_eq!(outcome.origin, "peer");
    pair.rests().await;
}

async fn carries(peer: &mut Forward, relay: &mut crate::common::Relay) {
    peer.headers().await;
    crate::common::works(peer, relay).await;
}

#[tokio::test]
async fn a_session_that_moves_on_while_it_is_asked_makes_its_owner_stale() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let peer = ask(&pair.owner, request(None), "gw1").await;
    supervisor.asked().await;
    let _successor = Supervisor::connect(pair.owner.addr, "known").await;
    let outcome = peer.outcome().await;
    is(&outcome, Code::FailedPrecondition, "STALE_OWNER");
    pair.rests().await;
}
