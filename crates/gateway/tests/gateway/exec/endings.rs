//! Who may end a command, and who is told what.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue};
use tidegate_lifecycle::exec::{Command, Exit, ExitReason};
use tidegate_testkit::messages::{FromGateway, RelayClose};
use tidegate_testkit::raw_h2::Client;
use tidegate_transport::{Connection, Endpoint};
use tidegate_wire::exec::Item;
use tidegate_wire::metadata::EXEC_SANDBOX_INTERACTIVE;
use tidegate_wire::unary;
use tonic::Code;

use super::{Talk, command, exit, request, running, stdout, supervisor};
use crate::common::{Running, Supervisor, config, is};

async fn unary(gateway: &Running) -> unary::Client<Connection> {
    let endpoint = Endpoint::parse(&format!("http://{}", gateway.addr)).unwrap();
    unary::Client::new(endpoint.connect().await.unwrap())
}

async fn closed(supervisor: &mut Supervisor) -> RelayClose {
    match supervisor.next().await {
        FromGateway::RelayClose(close) => close,
        other => panic!("expected the end of a relay, got {other:?}"),
    }
}

fn reason(close: &RelayClose) -> &str {
    close.cause.as_ref().unwrap().reason.as_str()
}

#[tokio::test]
async fn ex_32_a_cancel_is_told_as_one() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let (mut caller, process) = running(&client, &mut supervisor, command(&["cat"])).await;
    caller.send(Item::Stdin("half".into())).await;
    caller.outbox.reset(h2::Reason::CANCEL);
    assert_eq!(reason(&closed(&mut supervisor).await), "CLIENT_CANCELLED");
    drop((caller, process));
    gateway.stop().await;
}

#[tokio::test]
async fn a_request_that_ends_without_the_end_of_stdin_is_cut_short() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let (mut caller, process) = running(&client, &mut supervisor, command(&["cat"])).await;
    caller.outbox.finish().unwrap();
    let outcome = caller.outcome().await;
    assert!(!outcome.is_ok(), "{outcome:?}");
    assert_eq!(reason(&closed(&mut supervisor).await), outcome.reason);
    drop(process);
    gateway.stop().await;
}

#[tokio::test]
async fn ex_19_a_lost_session_ends_its_commands() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let (mut caller, mut process) = running(&client, &mut supervisor, command(&["cat"])).await;
    process.send(stdout("half", 1)).await;
    assert_eq!(caller.next().await, stdout("half", 1));
    drop((supervisor, process));
    let outcome = caller.outcome().await;
    assert_eq!(outcome.code, Code::Unavailable, "{outcome:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn an_exit_that_was_seen_and_not_delivered_is_in_the_details() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let (mut caller, mut process) = running(&client, &mut supervisor, command(&["yes"])).await;
    caller.inbox().await.withhold_credit();
    let piece = "y".repeat(64 * 1024).leak();
    for sequence in 1..=2 {
        process.send(stdout(piece, sequence)).await;
    }
    process.send(exit(5)).await;
    let unary = unary(&gateway).await;
    let ended = tidegate_testkit::wait::until_async(Duration::from_secs(5), async || {
        unary.streams(None).await.unwrap()[0].state == "downstream-finished"
    });
    ended.await.unwrap();
    let id = unary.streams(None).await.unwrap()[0].id.clone();
    let over = tidegate_testkit::wait::until_async(Duration::from_secs(5), async || {
        // The second one insists. One that is over is not known any more.
        let _ = unary.close_stream(&id).await;
        let streams = unary.streams(None).await.unwrap();
        streams
            .first()
            .is_none_or(|it| it.state != "downstream-finished")
    });
    over.await.unwrap();
    caller.inbox().await.give_credit().unwrap();
    let outcome = caller.outcome().await;
    is(&outcome, Code::Cancelled, "OPERATOR_CLOSED");
    let code = ("exit_code".to_owned(), "5".to_owned());
    assert!(outcome.facts.contains(&code), "{outcome:?}");
    drop((supervisor, process));
    gateway.stop().await;
}

#[tokio::test]
async fn a_command_that_an_operator_closes_has_time_for_its_exit() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let (mut caller, mut process) = running(&client, &mut supervisor, command(&["cat"])).await;
    let unary = unary(&gateway).await;
    let id = unary.streams(None).await.unwrap()[0].id.clone();
    unary.close_stream(&id).await.unwrap();
    assert_eq!(reason(&closed(&mut supervisor).await), "OPERATOR_CLOSED");
    let cancelled = Item::Exit(Box::new(Exit {
        code: 143,
        reason: ExitReason::Cancelled,
        signal: Some(15),
        ..Exit::default()
    }));
    process.send(cancelled.clone()).await;
    assert_eq!(caller.next().await, cancelled);
    assert!(caller.outcome().await.is_ok());
    assert!(process.outcome().await.is_ok());
    supervisor.is_alive(gateway.addr).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_command_that_does_not_end_when_an_operator_closes_it_is_given_up() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let stubborn = Command {
        kill_grace: Some(Duration::ZERO),
        ..command(&["cat"])
    };
    let (caller, process) = running(&client, &mut supervisor, stubborn.clone()).await;
    let unary = unary(&gateway).await;
    let id = unary.streams(None).await.unwrap()[0].id.clone();
    let begun = Instant::now();
    unary.close_stream(&id).await.unwrap();
    let outcome = caller.outcome().await;
    is(&outcome, Code::Cancelled, "OPERATOR_CLOSED");
    let waited = begun.elapsed();
    // The slack, and not the longest grace, which is 30 s.
    let bounds = Duration::from_secs(3)..Duration::from_secs(20);
    assert!(bounds.contains(&waited), "{waited:?}");
    drop(process);
    for _ in 0..2 {
        assert_eq!(reason(&closed(&mut supervisor).await), "OPERATOR_CLOSED");
    }

    let patient = Command {
        kill_grace: Some(Duration::from_secs(30)),
        ..stubborn
    };
    let (caller, process) = running(&client, &mut supervisor, patient).await;
    let id = unary.streams(None).await.unwrap()[0].id.clone();
    let begun = Instant::now();
    for _ in 0..2 {
        unary.close_stream(&id).await.unwrap();
    }
    let outcome = caller.outcome().await;
    is(&outcome, Code::Cancelled, "OPERATOR_CLOSED");
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "the second insists"
    );
    drop(process);
    gateway.stop().await;
}

#[tokio::test]
async fn a_command_that_has_not_started_is_closed_at_once() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let caller = Talk::open(&client, request(command(&["cat"]))).await;
    let channel = supervisor.asked().await.channel_id;
    let unary = unary(&gateway).await;
    let id = unary.streams(None).await.unwrap()[0].id.clone();
    unary.close_stream(&id).await.unwrap();
    is(&caller.outcome().await, Code::Cancelled, "OPERATOR_CLOSED");
    let close = closed(&mut supervisor).await;
    assert_eq!(
        (close.channel_id.as_str(), reason(&close)),
        (channel.as_str(), "OPERATOR_CLOSED")
    );
    gateway.stop().await;
}

#[tokio::test]
async fn the_callers_deadline_is_that_of_the_command() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut metadata = HeaderMap::new();
    metadata.insert("grpc-timeout", HeaderValue::from_static("500m"));
    let mut caller = Talk::silent(&client, EXEC_SANDBOX_INTERACTIVE, metadata).await;
    caller
        .send_bytes(request(command(&["cat"])).encode_first())
        .await;
    let process = Talk::serve(&mut supervisor).await;
    is(
        &caller.outcome().await,
        Code::DeadlineExceeded,
        "OPERATION_TIMEOUT",
    );
    assert_eq!(reason(&closed(&mut supervisor).await), "OPERATION_TIMEOUT");
    drop(process);
    gateway.stop().await;
}
