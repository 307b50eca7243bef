//! From the wish for a stream to an open path, and everything that can come between.

use std::time::{Duration, Instant};

use h2::Reason;
use http::HeaderMap;
use tidegate_gateway::Config;
use tidegate_gateway::config::UnknownSandboxes;
use tidegate_testkit::messages::{
    Cause, ForwardFrame, FromGateway, FromSupervisor, RelayOpenResult, path as paths,
};
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait::{self, GENEROUS};
use tonic::Code;

use crate::common::{Answer, Forward, Running, Supervisor, config, init, is, works};

#[tokio::test]
async fn ss_13_an_open_of_a_known_sandbox_waits_for_its_session() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut forward = Forward::open(&client, init("known")).await;
    client.ping().await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let mut relay = supervisor.serve().await;
    works(&mut forward, &mut relay).await;
    gateway.stop().await;
}

#[tokio::test]
async fn ss_13_without_a_session_the_wait_ends_with_no_session() {
    let wait = Duration::from_millis(300);
    let gateway = Running::start(Config {
        session_wait: wait,
        ..config()
    })
    .await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let asked = Instant::now();
    let outcome = Forward::open(&client, init("known")).await.outcome().await;
    is(&outcome, Code::Unavailable, "NO_SESSION");
    assert!(asked.elapsed() >= wait);
    gateway.stop().await;
}

#[tokio::test]
async fn an_unknown_name_is_refused_at_once_or_waited_for_as_configured() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let outcome = Forward::open(&client, init("nobody")).await.outcome().await;
    is(&outcome, Code::NotFound, "SANDBOX_NOT_FOUND");
    gateway.stop().await;

    let wait = Duration::from_millis(200);
    let patient = [
        Config {
            unknown_sandboxes: UnknownSandboxes::Wait,
            session_wait: wait,
            ..config()
        },
        Config {
            restart_grace: GENEROUS,
            session_wait: wait,
            ..config()
        },
    ];
    for config in patient {
        let gateway = Running::start(config).await;
        let client = Client::connect(gateway.addr).await.unwrap();
        let outcome = Forward::open(&client, init("nobody")).await.outcome().await;
        is(&outcome, Code::Unavailable, "NO_SESSION");
        gateway.stop().await;
    }
}

/// A reset behind the status makes some libraries and proxies forget the status (hyperium/h2#633).
#[tokio::test]
async fn a_refusal_is_not_followed_by_a_reset_while_the_client_uploads() {
    let gateway = Running::start(config()).await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    for sandbox in ["known", "nobody"] {
        let forward = Forward::open(&client, init(sandbox)).await;
        if sandbox == "known" {
            let open = supervisor.asked().await;
            supervisor.answer(&open.channel_id, Some("no")).await;
        }
        let Forward { mut outbox, answer } = forward;
        assert_ne!(answer.outcome().await.code, Code::Ok);
        let quiet = Duration::from_millis(300);
        let reset = tokio::time::timeout(quiet, outbox.lost()).await;
        assert!(reset.is_err(), "{sandbox}: {reset:?}");
        let upload = vec![0; 2 << 20]; // more than the window: it is taken and thrown away
        wait::within(GENEROUS, "the upload", outbox.send(upload.into()))
            .await
            .unwrap();
    }
    gateway.stop().await;
}

#[tokio::test]
async fn ss_09_an_open_whose_supervisor_dies_fails_at_once() {
    let gateway = Running::start(config()).await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let forward = Forward::open(&client, init("known")).await;
    supervisor.asked().await;
    drop(supervisor);
    let outcome = forward.outcome();
    let outcome = wait::within(Duration::from_secs(2), "the end of the open", outcome).await;
    is(&outcome, Code::Unavailable, "SUPERVISOR_LOST");
    gateway.stop().await;
}

#[tokio::test]
async fn pf_25_an_open_that_is_cancelled_cancels_the_dial() {
    let gateway = Running::start(config()).await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut forward = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    forward.outbox.reset(Reason::CANCEL);
    let FromGateway::RelayClose(close) = supervisor.next().await else {
        panic!("it is told")
    };
    assert_eq!(close.channel_id, open.channel_id);
    let cause = close.cause.unwrap();
    assert_eq!(
        (cause.reason.as_str(), cause.origin.as_str()),
        ("CLIENT_CANCELLED", "client")
    );
    let late = supervisor
        .claim(supervisor.relay_init(&open.channel_id))
        .await;
    is(
        &late.answer.outcome().await,
        Code::NotFound,
        "CHANNEL_UNKNOWN",
    );
    supervisor.is_alive(gateway.addr).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_supervisor_that_has_moved_on_is_asked_again_in_its_next_session() {
    let gateway = Running::start(config()).await;
    let mut old = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut forward = Forward::open(&client, init("known")).await;
    let open = old.asked().await;
    let cause = Cause {
        reason: "STALE_SESSION".to_owned(),
        origin: "supervisor".to_owned(),
        ..Cause::default()
    };
    old.say(FromSupervisor::RelayOpenResult(RelayOpenResult {
        channel_id: open.channel_id,
        cause: Some(cause),
        ..RelayOpenResult::default()
    }))
    .await;
    let mut new = Supervisor::connect(gateway.addr, "known").await;
    let mut relay = new.serve().await;
    works(&mut forward, &mut relay).await;
    gateway.stop().await;
}

#[tokio::test]
async fn an_open_that_its_session_is_superseded_under_asks_the_successor() {
    let gateway = Running::start(config()).await;
    let mut old = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut forward = Forward::open(&client, init("known")).await;
    old.asked().await;
    let mut new = Supervisor::connect(gateway.addr, "known").await;
    let mut relay = new.serve().await;
    works(&mut forward, &mut relay).await;
    gateway.stop().await;
}

#[tokio::test]
async fn the_deadline_of_the_call_holds_for_its_whole_life() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut metadata = HeaderMap::new();
    metadata.insert("grpc-timeout", "300m".parse().unwrap());
    let call = client
        .open(paths::FORWARD_TCP, metadata.clone())
        .await
        .unwrap();
    let mut forward = Forward {
        outbox: call.outbox,
        answer: Answer::Waiting(call.response),
    };
    forward.send(ForwardFrame::init(init("known"))).await;
    is(
        &forward.outcome().await,
        Code::DeadlineExceeded,
        "OPERATION_TIMEOUT",
    );

    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let call = client.open(paths::FORWARD_TCP, metadata).await.unwrap();
    let mut forward = Forward {
        outbox: call.outbox,
        answer: Answer::Waiting(call.response),
    };
    forward.send(ForwardFrame::init(init("known"))).await;
    let mut relay = supervisor.serve().await;
    works(&mut forward, &mut relay).await;
    is(
        &forward.outcome().await,
        Code::DeadlineExceeded,
        "OPERATION_TIMEOUT",
    );
    is(
        &relay.answer.outcome().await,
        Code::DeadlineExceeded,
        "OPERATION_TIMEOUT",
    );
    gateway.stop().await;
}

#[tokio::test]
async fn the_deadline_of_a_call_counts_from_its_headers() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut metadata = HeaderMap::new();
    metadata.insert("grpc-timeout", "200m".parse().unwrap());
    for path in [paths::FORWARD_TCP, paths::CREATE_SSH_SESSION] {
        // Nothing is ever sent on it.
        let call = client.open(path, metadata.clone()).await.unwrap();
        let answer = Answer::Waiting(call.response).outcome();
        let outcome = wait::within(Duration::from_secs(5), "the deadline", answer).await;
        is(&outcome, Code::DeadlineExceeded, "OPERATION_TIMEOUT");
    }
    client.ping().await.unwrap();
    gateway.stop().await;
}

#[tokio::test]
async fn a_call_that_says_nothing_ends_with_init_timeout() {
    let gateway = Running::start(Config {
        init_timeout: Duration::from_millis(200),
        ..config()
    })
    .await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let forward = Forward::silent(&client).await.outcome().await;
    is(&forward, Code::DeadlineExceeded, "INIT_TIMEOUT");
    for path in [paths::RELAY_STREAM, paths::CONNECT_SUPERVISOR] {
        let call = client.open(path, HeaderMap::new()).await.unwrap();
        let outcome = Answer::Waiting(call.response).outcome().await;
        is(&outcome, Code::DeadlineExceeded, "INIT_TIMEOUT");
    }
    gateway.stop().await;
}
