//! Commands through both gateways, by both doors.

use bytes::Bytes;
use h2::Reason;
use tidegate_lifecycle::exec::KillScope;
use tidegate_lifecycle::{End, Origin, Reason as Why};
use tidegate_wire::exec::{ExecRequest, Item, Start};
use tonic::Code;

use super::{Pair, closed, reason};
use crate::common::is;
use crate::exec::{Talk, command, exit, exits, request, running, stdout, supervisor};

#[tokio::test]
async fn ha_02_ex_04_a_command_is_talked_with_through_the_interactive_door() {
    let pair = Pair::start().await;
    let mut supervisor = supervisor(&pair.owner).await;
    let client = pair.client().await;
    let (mut caller, mut process) = running(&client, &mut supervisor, command(&["sh"])).await;
    process.send(stdout("out", 1)).await;
    assert_eq!(caller.next().await, stdout("out", 1));
    for item in [Item::Stdin("in".into()), Item::Signal(15), Item::StdinFin] {
        caller.send(item.clone()).await;
        assert_eq!(process.next().await, item);
    }
    caller.send(Item::Signal(9)).await;
    assert_eq!(
        process.next().await,
        Item::Signal(9),
        "after the end of stdin"
    );
    exits(caller, process, 3).await;
    pair.rests().await;
}

#[tokio::test]
async fn ha_02_ex_05_one_request_arrives_with_all_of_its_stdin() {
    let pair = Pair::start().await;
    let mut supervisor = supervisor(&pair.owner).await;
    let client = pair.client().await;
    let stdin = Bytes::from(vec![7; 600 * 1024]);
    let request = ExecRequest {
        start: Start {
            stdin: stdin.clone(),
            ..Start::new(command(&["cat"]))
        },
        ..request(command(&[]))
    };
    let mut caller = Talk::once(&client, request).await;
    let mut process = Talk::serve(&mut supervisor).await;
    let Item::Start(start) = process.next().await else {
        panic!("no start");
    };
    assert_eq!(start.command, command(&["cat"]));
    let mut seen = Vec::new();
    loop {
        match process.next().await {
            Item::Stdin(data) => seen.extend_from_slice(&data),
            Item::StdinFin => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, stdin);
    process.send(Item::Started(Ok(KillScope::Cgroup))).await;
    process.send(stdout("done", 1)).await;
    process.send(exit(0)).await;
    assert_eq!(caller.next().await, stdout("done", 1));
    assert_eq!(caller.next().await, exit(0));
    assert!(caller.outcome().await.is_ok());
    pair.rests().await;
}

#[tokio::test]
async fn ha_02_ex_17_a_command_that_cannot_start_is_a_status_with_every_hop() {
    let pair = Pair::start().await;
    let mut supervisor = supervisor(&pair.owner).await;
    let client = pair.client().await;
    let caller = Talk::open(&client, request(command(&["nothing"]))).await;
    let mut process = Talk::serve(&mut supervisor).await;
    let Item::Start(_) = process.next().await else {
        panic!("no start");
    };
    let failed = End::new(Origin::Supervisor, Why::ExecNotFound, "no such program");
    process.send(Item::Started(Err(Box::new(failed)))).await;
    process.outbox.finish().unwrap();
    let outcome = caller.outcome().await;
    is(&outcome, Code::FailedPrecondition, "EXEC_NOT_FOUND");
    let hops = outcome
        .facts
        .iter()
        .find(|(name, _)| name == "hops")
        .unwrap();
    assert_eq!(hops.1, "gw0,gw1");
    pair.rests().await;
}

#[tokio::test]
async fn ha_02_ex_32_a_cancel_is_told_as_one() {
    let pair = Pair::start().await;
    let mut supervisor = supervisor(&pair.owner).await;
    let client = pair.client().await;
    let (mut caller, process) = running(&client, &mut supervisor, command(&["cat"])).await;
    caller.outbox.reset(Reason::CANCEL);
    assert_eq!(reason(&closed(&mut supervisor).await), "CLIENT_CANCELLED");
    drop((caller, process));
    pair.rests().await;
}

#[tokio::test]
async fn a_supervisor_that_runs_no_commands_is_told_as_at_its_own_gateway() {
    let pair = Pair::start().await;
    let _supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let caller = Talk::open(&client, request(command(&["true"]))).await;
    is(
        &caller.outcome().await,
        Code::FailedPrecondition,
        "CAPABILITY_REQUIRED",
    );
    pair.rests().await;
}
