//! Sessions: their beginning, what disturbs them and what does not, and every way they end.

use std::time::Duration;

use h2::Reason;
use http::HeaderMap;
use tidegate_gateway::Config;
use tidegate_testkit::fault_proxy::{Direction, FaultProxy};
use tidegate_testkit::messages::{
    Cause, Empty, FromGateway, FromSupervisor, Goodbye, Hello, RelayClose, RelayOpenResult,
    path as paths,
};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{Client, grpc};
use tidegate_testkit::wait::{self, GENEROUS};
use tonic::Code;

use crate::common::{
    Answer, Forward, Relay, Running, Supervisor, config, control, hello, init, is, path, works,
};

async fn said(gateway: &Running, said: Vec<FromSupervisor>) -> Outcome {
    let client = Client::connect(gateway.addr).await.unwrap();
    let call = control(&client, said).await;
    let outcome = Answer::Waiting(call.response).outcome().await;
    client.ping().await.unwrap();
    outcome
}

#[tokio::test]
async fn an_accepted_session_is_told_everything_in_both_dialects() {
    let gateway = Running::start(config()).await;
    let supervisor = Supervisor::connect(gateway.addr, "known").await;
    let accepted = &supervisor.accepted;
    assert_eq!(accepted.heartbeat_interval_secs, 15);
    assert_eq!(accepted.heartbeat_interval.unwrap().seconds, 15);
    assert_eq!(accepted.capabilities.len(), 6);
    assert!(accepted.proposed_capabilities.is_empty());
    assert_eq!(
        supervisor.headers["tidegate-session-id"],
        accepted.session_id.as_str()
    );
    gateway.stop().await;
}

#[tokio::test]
async fn what_is_said_before_a_hello_is_a_violation() {
    let gateway = Running::start(config()).await;
    let result = RelayOpenResult {
        channel_id: "c".to_owned(),
        ..RelayOpenResult::default()
    };
    for first in [
        FromSupervisor::Heartbeat(Empty {}),
        FromSupervisor::RelayOpenResult(result),
        FromSupervisor::Goodbye(Goodbye::default()),
    ] {
        is(
            &said(&gateway, vec![first]).await,
            Code::InvalidArgument,
            "PROTOCOL_VIOLATION",
        );
    }
    let nameless = FromSupervisor::Hello(Hello {
        sandbox_id: String::new(),
        ..hello("known")
    });
    let outcome = said(&gateway, vec![nameless]).await;
    is(&outcome, Code::InvalidArgument, "INVALID_REQUEST");
    assert!(outcome.message.contains("sandbox_id"), "{outcome:?}");
    for bytes in [
        grpc::frame_bytes(0, b""),
        grpc::frame_bytes(0, &[0x3a, 1, b'x']),
    ] {
        let client = Client::connect(gateway.addr).await.unwrap();
        let open = client.open(paths::CONNECT_SUPERVISOR, HeaderMap::new());
        let mut call = open.await.unwrap();
        call.outbox.send(bytes).await.unwrap();
        let outcome = Answer::Waiting(call.response).outcome().await;
        is(&outcome, Code::InvalidArgument, "PROTOCOL_VIOLATION");
    }
    gateway.stop().await;
}

#[tokio::test]
async fn ss_21_another_version_is_rejected_in_both_ways_and_both_are_named() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let newer = FromSupervisor::Hello(Hello {
        protocol_version: 99,
        ..hello("known")
    });
    let call = control(&client, vec![newer]).await;
    let (_, headers, mut inbox) = call.response.headers().await.unwrap();
    let tidegate_testkit::raw_h2::Received::Message(message) = inbox.next().await else {
        panic!("a rejection comes first")
    };
    use prost::Message as _;
    let rejected = tidegate_testkit::messages::GatewayMessage::decode(message).unwrap();
    let Some(FromGateway::SessionRejected(rejected)) = rejected.payload else {
        panic!()
    };
    assert!(rejected.reason.contains("99") && rejected.reason.contains("version 1"));
    let outcome = Answer::Open(headers, inbox).outcome().await;
    is(&outcome, Code::FailedPrecondition, "VERSION_UNSUPPORTED");
    gateway.stop().await;
}

#[tokio::test]
async fn a_second_hello_ends_the_session_and_no_other() {
    let gateway = Running::start(config()).await;
    let mut known = Supervisor::connect(gateway.addr, "known").await;
    let mut other = Supervisor::connect(gateway.addr, "other").await;
    other.say(FromSupervisor::Hello(hello("other"))).await;
    is(
        &other.outcome().await,
        Code::InvalidArgument,
        "PROTOCOL_VIOLATION",
    );
    known.is_alive(gateway.addr).await;
    gateway.stop().await;
}

#[tokio::test]
async fn messages_about_relays_of_nobody_and_unknown_ones_are_ignored() {
    let gateway = Running::start(config()).await;
    let mut known = Supervisor::connect(gateway.addr, "known").await;
    let mut other = Supervisor::connect(gateway.addr, "other").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut forward = Forward::open(&client, init("known")).await;
    let mut relay = known.serve().await;
    relay.headers().await;
    let foreign = client_channel(&mut known, &client).await;
    let cause = Some(Cause {
        reason: "TARGET_RESET".to_owned(),
        ..Cause::default()
    });
    for channel in [foreign.as_str(), "nobody"] {
        other.answer(channel, Some("mine now")).await;
        other
            .say(FromSupervisor::RelayClose(RelayClose {
                channel_id: channel.to_owned(),
                code: 4,
                cause: cause.clone(),
                ..RelayClose::default()
            }))
            .await;
    }
    other.outbox.send(grpc::frame_bytes(0, b"")).await.unwrap();
    other
        .outbox
        .send(grpc::frame_bytes(0, &[0xba, 0x3e, 0]))
        .await
        .unwrap();
    other.answer("", None).await;
    works(&mut forward, &mut relay).await;
    // The session that said all this goes on, too: a stream to it is asked for.
    let _to_other = Forward::open(&client, init("other")).await;
    other.asked().await;
    known.answer(&foreign, Some("done")).await;
    gateway.stop().await;
}

/// Opens a stream and returns the channel that the supervisor is asked for.
async fn client_channel(supervisor: &mut Supervisor, client: &Client) -> String {
    let forward = Forward::open(client, init("known")).await;
    let channel = supervisor.asked().await.channel_id;
    // Kept open: the test is about others who talk of it.
    std::mem::forget(forward);
    channel
}

#[tokio::test]
async fn ss_01_the_newest_session_wins_and_the_old_one_s_end_changes_nothing() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut current = Supervisor::connect(gateway.addr, "known").await;
    for _ in 0..20 {
        let (forward, relay) = path(&client, &mut current, "known").await;
        let successor = Supervisor::connect(gateway.addr, "known").await;
        let mut old = std::mem::replace(&mut current, successor);
        let outcome = old.outcome().await;
        is(&outcome, Code::Unavailable, "SUPERSEDED");
        assert!(outcome.message.contains("raw"), "{outcome:?}");
        is(&forward.outcome().await, Code::Unavailable, "SUPERSEDED");
        is(
            &relay.answer.outcome().await,
            Code::Unavailable,
            "SUPERSEDED",
        );
        current.is_alive(gateway.addr).await;
    }
    gateway.stop().await;
}

#[tokio::test]
async fn a_lost_control_stream_ends_its_relays_at_once() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (forward, relay) = path(&client, &mut supervisor, "known").await;
    // The control stream alone: the connection, and the relay on it, would go on.
    supervisor.outbox.reset(Reason::CANCEL);
    let outcome = wait::within(Duration::from_secs(1), "the end", forward.outcome()).await;
    is(&outcome, Code::Unavailable, "SUPERVISOR_LOST");
    drop(relay);
    gateway.stop().await;
}

#[tokio::test]
async fn ss_15_a_supervisor_that_says_goodbye_finishes_its_relays() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    let deadline = Some(prost_types::Duration {
        seconds: 10,
        nanos: 0,
    });
    supervisor
        .say(FromSupervisor::Goodbye(Goodbye { deadline }))
        .await;
    let waiting = Forward::open(&client, init("known")).await;
    works(&mut forward, &mut relay).await;
    crate::common::finishes(forward, relay).await;
    assert!(supervisor.outcome().await.is_ok());
    // A stream that was asked for meanwhile waits for the next session.
    let mut next = Supervisor::connect(gateway.addr, "known").await;
    let open = next.asked().await;
    next.answer(&open.channel_id, Some("here")).await;
    assert_eq!(waiting.outcome().await.message, "here");
    gateway.stop().await;
}

#[tokio::test]
async fn a_clean_end_stops_the_relays_that_are_open() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (forward, _relay) = path(&client, &mut supervisor, "known").await;
    supervisor.outbox.finish().unwrap();
    is(
        &forward.outcome().await,
        Code::Unavailable,
        "SUPERVISOR_STOPPED",
    );
    assert!(supervisor.outcome().await.is_ok());
    gateway.stop().await;
}

#[tokio::test]
async fn ss_03_silence_ends_a_session_that_agreed_on_liveness() {
    let gateway = Running::start(Config {
        heartbeat_interval: Duration::from_millis(100),
        ..config()
    })
    .await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (forward, _relay) = path(&client, &mut supervisor, "known").await;
    is(
        &forward.outcome().await,
        Code::Unavailable,
        "HEARTBEAT_TIMEOUT",
    );
    is(
        &supervisor.outcome().await,
        Code::Unavailable,
        "HEARTBEAT_TIMEOUT",
    );
    gateway.stop().await;
}

#[tokio::test]
async fn ss_19_a_supervisor_that_never_agreed_on_liveness_is_left_alone() {
    let gateway = Running::start(Config {
        heartbeat_interval: Duration::from_millis(50),
        ..config()
    })
    .await;
    let legacy = Hello {
        capabilities: Vec::new(),
        ..hello("known")
    };
    let mut supervisor = Supervisor::greet(gateway.addr, legacy).await;
    for _ in 0..10 {
        let heartbeat = wait::within(GENEROUS, "a heartbeat", supervisor.inbox.next()).await;
        assert!(matches!(
            heartbeat,
            tidegate_testkit::raw_h2::Received::Message(_)
        ));
    }
    supervisor.is_alive(gateway.addr).await;
    gateway.stop().await;
}

#[tokio::test]
async fn ss_23_a_typed_close_ends_one_relay_and_is_obeyed() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let mut forward = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    let mut relay = supervisor
        .claim(supervisor.relay_init(&open.channel_id))
        .await;
    works(&mut forward, &mut relay).await;
    let cause = Cause {
        reason: "TARGET_RESET".to_owned(),
        origin: "target".to_owned(),
        message: "the target reset the connection".to_owned(),
        ..Cause::default()
    };
    let close = RelayClose {
        channel_id: open.channel_id,
        code: 4,
        cause: Some(cause),
        ..RelayClose::default()
    };
    supervisor.say(FromSupervisor::RelayClose(close)).await;
    relay.outbox.reset(Reason::CANCEL);
    let outcome = forward.outcome().await;
    is(&outcome, Code::Unavailable, "TARGET_RESET");
    assert_eq!(outcome.origin, "target");
    // It knows: nothing is said back about that relay.
    supervisor.is_alive(gateway.addr).await;
    gateway.stop().await;
}

#[tokio::test]
async fn pf_16_a_relay_that_is_reset_without_a_word_is_an_abort_whatever_the_code() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    for code in [Reason::NO_ERROR, Reason::CANCEL, Reason::INTERNAL_ERROR] {
        let (forward, mut relay) = path(&client, &mut supervisor, "known").await;
        relay.outbox.reset(code);
        let outcome = forward.outcome().await;
        is(&outcome, Code::Unavailable, "TRANSPORT_LOST");
        assert_eq!(outcome.origin, "supervisor");
    }
    supervisor.is_alive(gateway.addr).await;
    gateway.stop().await;
}

/// The host is gone, whichever of its connections shows it first.
#[tokio::test]
async fn a_data_connection_that_answers_no_ping_is_a_missing_heartbeat() {
    let gateway = Running::start(Config {
        ping_interval: Duration::from_millis(300),
        ping_timeout: Duration::from_millis(300),
        ..config()
    })
    .await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let mut forward = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    let proxy = FaultProxy::start(gateway.addr).unwrap();
    let data = Client::connect(proxy.address()).await.unwrap();
    let mut relay = Relay::claim(&data, supervisor.relay_init(&open.channel_id)).await;
    works(&mut forward, &mut relay).await;
    proxy.hold(Direction::Both);
    let outcome = forward.outcome().await;
    is(&outcome, Code::Unavailable, "HEARTBEAT_TIMEOUT");
    assert_eq!(outcome.origin, "supervisor");
    supervisor.is_alive(gateway.addr).await;
    gateway.stop().await;
}
