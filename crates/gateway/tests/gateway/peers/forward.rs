//! Streams of bytes through both gateways.

use bytes::Bytes;
use h2::Reason;
use tidegate_testkit::content::Content;
use tidegate_testkit::legacy::{self, Dialect, SupervisorOptions};
use tidegate_testkit::messages::{Empty, ForwardFrame, ForwardPayload, RelayFrame, RelayPayload};
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::target::Target;
use tidegate_transport::Endpoint;
use tidegate_wire::unary;
use tonic::Code;

use super::{Pair, closed, reason};
use crate::admin::metrics;
use crate::common::{Answer, Forward, Relay, Running, finishes, init, is, path, works};

async fn crossed(gateway: &Running) -> Vec<Vec<String>> {
    let endpoint = Endpoint::parse(&format!("http://{}", gateway.addr)).unwrap();
    let client = unary::Client::new(endpoint.connect().await.unwrap());
    let streams = client.streams(None).await.unwrap();
    let names = |stream: unary::Stream| stream.path.iter().map(ToString::to_string).collect();
    streams.into_iter().map(names).collect()
}

#[tokio::test]
async fn ha_01_a_stream_at_the_wrong_gateway_works_as_at_the_right_one() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    let headers = forward.headers().await;
    let header = |name: &str| headers.get(name).unwrap().to_str().unwrap().to_owned();
    assert!(header("tidegate-path-capabilities").contains("stream-explicit-fin-v1"));
    assert_eq!(
        header("tidegate-session-id"),
        supervisor.accepted.session_id
    );
    for gateway in [&pair.owner, &pair.asks] {
        assert_eq!(crossed(gateway).await, [["gw1", "gw0"]]);
        assert_eq!(metrics(gateway).await.gauges["tidegate_peer_streams"], 1.0);
    }
    let asks = metrics(&pair.asks).await;
    assert_eq!(asks.gauges["tidegate_peer_connections"], 1.0);
    let opened = "tidegate_streams_opened_total{kind=\"forward\",route=\"peer\"}";
    assert_eq!(asks.others[opened], 1.0);
    let seconds = "tidegate_stream_open_seconds_count{route=\"peer\"}";
    assert_eq!(asks.others[seconds], 1.0);
    finishes(forward, relay).await;
    pair.rests().await;
}

#[tokio::test]
async fn ha_02_each_direction_ends_by_itself_whichever_is_first() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;

    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    forward.send(ForwardFrame::half_close()).await;
    forward.outbox.finish().unwrap();
    assert_eq!(relay.next().await, RelayPayload::HalfClose(Empty {}));
    relay.send(RelayFrame::data("late")).await;
    assert_eq!(
        forward.next().await,
        ForwardPayload::Data(Bytes::from("late"))
    );
    relay.send(RelayFrame::half_close()).await;
    assert_eq!(forward.next().await, ForwardPayload::HalfClose(Empty {}));
    relay.outbox.finish().unwrap();
    assert!(forward.outcome().await.is_ok());
    assert!(relay.answer.outcome().await.is_ok());

    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    relay.send(RelayFrame::half_close()).await;
    assert_eq!(forward.next().await, ForwardPayload::HalfClose(Empty {}));
    forward.send(ForwardFrame::data("late")).await;
    assert_eq!(relay.next().await, RelayPayload::Data(Bytes::from("late")));
    forward.send(ForwardFrame::half_close()).await;
    forward.outbox.finish().unwrap();
    assert_eq!(relay.next().await, RelayPayload::HalfClose(Empty {}));
    relay.outbox.finish().unwrap();
    assert!(forward.outcome().await.is_ok());
    pair.rests().await;
}

#[tokio::test]
async fn ha_02_a_refusal_keeps_its_code_and_names_every_hop() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let forward = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    supervisor
        .answer(&open.channel_id, Some("nobody listens"))
        .await;
    let outcome = forward.outcome().await;
    is(&outcome, Code::Unavailable, "TARGET_UNREACHABLE");
    assert_eq!(
        (outcome.message.as_str(), outcome.origin.as_str()),
        ("nobody listens", "target")
    );
    let hops = outcome
        .facts
        .iter()
        .find(|(name, _)| name == "hops")
        .unwrap();
    assert!(hops.1.ends_with("gw0,gw1"), "{hops:?}");
    pair.rests().await;
}

#[tokio::test]
async fn ha_02_a_reset_of_the_client_is_told_to_the_supervisor_as_one() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    forward.outbox.reset(Reason::CANCEL);
    let outcome = relay.answer.outcome().await;
    is(&outcome, Code::Cancelled, "CLIENT_CANCELLED");
    assert_eq!(outcome.origin, "client");
    assert_eq!(reason(&closed(&mut supervisor).await), "CLIENT_CANCELLED");
    pair.rests().await;
}

#[tokio::test]
async fn ha_02_a_cancel_gets_through_while_both_hops_are_blocked() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let mut forward = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    supervisor.answer(&open.channel_id, None).await;
    // On a connection of its own, so that the session is not blocked with it.
    let data = Client::connect(pair.owner.addr).await.unwrap();
    let mut relay = Relay::claim(&data, supervisor.relay_init(&open.channel_id)).await;
    forward.headers().await;
    relay.answer.inbox().await.withhold_credit();
    let flood = async {
        loop {
            forward.send(ForwardFrame::data(vec![7; 60_000])).await;
        }
    };
    // No window is left on any hop when nothing is taken for so long.
    let full = async {
        let held = async || metrics(&pair.asks).await.gauges["tidegate_buffered_bytes"] > 0.0;
        tidegate_testkit::wait::until_async(tidegate_testkit::wait::GENEROUS, held).await
    };
    tokio::select! {
        () = flood => {}
        full = full => full.unwrap(),
    }
    forward.outbox.reset(Reason::CANCEL);
    assert_eq!(reason(&closed(&mut supervisor).await), "CLIENT_CANCELLED");
    drop(relay);
    pair.rests().await;
}

#[tokio::test]
async fn a_cancel_while_the_path_opens_reaches_the_supervisor() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let mut forward = Forward::open(&client, init("known")).await;
    supervisor.asked().await;
    forward.outbox.reset(Reason::CANCEL);
    assert_eq!(reason(&closed(&mut supervisor).await), "CLIENT_CANCELLED");
    pair.rests().await;
}

#[tokio::test]
async fn the_clients_deadline_holds_at_both() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let mut headers = http::HeaderMap::new();
    headers.insert("grpc-timeout", "300m".parse().unwrap());
    let path = tidegate_wire::metadata::FORWARD_TCP;
    let mut call = client.open(path, headers).await.unwrap();
    call.outbox
        .message(&ForwardFrame::init(init("known")))
        .await
        .unwrap();
    let relay = supervisor.serve().await;
    let outcome = Answer::Waiting(call.response).outcome().await;
    is(&outcome, Code::DeadlineExceeded, "OPERATION_TIMEOUT");
    // Both gateways know the deadline, and whichever is first tells: the requester by a reset.
    let told = relay.answer.outcome().await.reason;
    assert!(
        ["OPERATION_TIMEOUT", "CLIENT_CANCELLED"].contains(&told.as_str()),
        "{told}"
    );
    pair.rests().await;
}

#[tokio::test]
async fn released_clients_and_supervisors_are_carried_between_gateways() {
    let pair = Pair::start().await;
    let target = Target::echo().unwrap();
    for (at, dialect) in [Dialect::Old, Dialect::New, Dialect::Proposed]
        .into_iter()
        .enumerate()
    {
        let sandbox = format!("legacy-{at}");
        let mut options = SupervisorOptions::new(pair.owner.addr, &sandbox);
        options.dialect = dialect;
        let supervisor = legacy::Supervisor::start(options).unwrap();
        supervisor.accepted().await;
        let client = legacy::Client::connect(pair.asks.addr, dialect)
            .await
            .unwrap();
        let port = target.address().port();
        let mut forward = client.forward(&sandbox, "127.0.0.1", port).await.unwrap();
        let content = Content::new(300_000, at as u64);
        assert!(forward.send_content(content).await, "{dialect:?}");
        assert_eq!(forward.read(300_000).await.len(), 300_000, "{dialect:?}");
        forward.finish();
        let rest = forward.read_to_end().await;
        assert!(rest.outcome.is_ok(), "{dialect:?}: {:?}", rest.outcome);
    }
    pair.rests().await;
}

#[tokio::test]
async fn ha_05_and_ha_16_nothing_is_left_over_and_no_connection_is_made_twice() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    for round in 0..60 {
        let (mut forward, relay) = path(&client, &mut supervisor, "known").await;
        match round % 3 {
            0 => finishes(forward, relay).await,
            1 => {
                forward.outbox.reset(Reason::CANCEL);
                closed(&mut supervisor).await;
            }
            _ => {
                drop(relay.answer);
                let mut outbox = relay.outbox;
                outbox.reset(Reason::CANCEL);
                assert!(!forward.outcome().await.is_ok());
            }
        }
    }
    let connections = metrics(&pair.asks).await.gauges["tidegate_peer_connections"];
    assert_eq!(
        connections, 1.0,
        "one client's connection, one thread, one connection"
    );
    pair.rests().await;
}
