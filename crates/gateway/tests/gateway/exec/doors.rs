//! From a call to a command and back, through both doors.

use bytes::Bytes;
use tidegate_lifecycle::exec::{KillScope, TerminalSize};
use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_testkit::raw_h2::Client;
use tidegate_transport::Endpoint;
use tidegate_wire::exec::{ExecRequest, Item, Start};
use tidegate_wire::{metadata, unary};
use tonic::Code;

use super::{Talk, command, exit, exits, on_terminal, request, running, stdout, supervisor};
use crate::common::{Running, config, is};

#[tokio::test]
async fn what_is_said_through_the_interactive_door_arrives_in_order() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut caller = Talk::open(&client, request(on_terminal(&["sh", "-l"]))).await;
    caller.send(Item::Stdin("early".into())).await;
    let mut process = Talk::serve(&mut supervisor).await;
    let Item::Start(start) = process.next().await else {
        panic!("no start");
    };
    assert_eq!(start.command, on_terminal(&["sh", "-l"]));
    assert_eq!(process.next().await, Item::Stdin("early".into()));
    process.send(Item::Started(Ok(KillScope::Reaper))).await;
    process.send(stdout("out", 1)).await;
    assert_eq!(caller.next().await, stdout("out", 1));
    let size = TerminalSize {
        cols: 132,
        rows: 43,
    };
    for item in [Item::Resize(size), Item::Signal(28), Item::StdinFin] {
        caller.send(item.clone()).await;
        assert_eq!(process.next().await, item);
    }
    caller.send(Item::Signal(2)).await;
    assert_eq!(
        process.next().await,
        Item::Signal(2),
        "after the end of stdin"
    );
    exits(caller, process, 3).await;
    gateway.stop().await;
}

#[tokio::test]
async fn one_request_is_a_start_with_all_of_stdin() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
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
    assert!(process.outcome().await.is_ok());
    gateway.stop().await;
}

#[tokio::test]
async fn ex_09_an_exit_does_not_wait_for_the_end_of_stdin() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let (caller, process) = running(&client, &mut supervisor, command(&["true"])).await;
    exits(caller, process, 0).await;
    supervisor.is_alive(gateway.addr).await;
    gateway.stop().await;
}

#[tokio::test]
async fn ex_36_a_start_that_failed_is_a_status_without_headers() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut caller = Talk::open(&client, request(command(&["nothing"]))).await;
    let mut process = Talk::serve(&mut supervisor).await;
    process.next().await;
    let end = End::new(Origin::Supervisor, Reason::ExecNotFound, "not found");
    process.send(Item::Started(Err(Box::new(end)))).await;
    // Answer::outcome is that of headers and nothing else.
    assert!(caller.answer.refused().await.is_some());
    let outcome = caller.outcome().await;
    is(&outcome, Code::FailedPrecondition, "EXEC_NOT_FOUND");
    assert_eq!(outcome.origin, "supervisor");
    gateway.stop().await;
}

#[tokio::test]
async fn a_supervisor_that_runs_no_commands_is_not_asked() {
    let gateway = Running::start(config()).await;
    let mut supervisor = crate::common::Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let caller = Talk::open(&client, request(command(&["true"]))).await;
    let outcome = caller.outcome().await;
    is(&outcome, Code::FailedPrecondition, "CAPABILITY_REQUIRED");
    assert!(outcome.message.contains("does not run commands"));
    supervisor.is_alive(gateway.addr).await;
    gateway.stop().await;
}

#[tokio::test]
async fn tables_show_the_program_and_none_of_its_arguments() {
    let gateway = Running::start(config()).await;
    let mut supervisor = supervisor(&gateway).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let secret = command(&["/bin/login", "--password", "hunter2"]);
    let (mut caller, process) = running(&client, &mut supervisor, secret).await;
    let headers = caller.answer.headers().clone();
    let endpoint = Endpoint::parse(&format!("http://{}", gateway.addr)).unwrap();
    let unary = unary::Client::new(endpoint.connect().await.unwrap());
    let listed = unary.streams(None).await.unwrap();
    let [stream] = listed.as_slice() else {
        panic!("{listed:?}")
    };
    let shown = (stream.kind.as_str(), stream.target.as_str());
    assert_eq!(shown, ("exec", "/bin/login"));
    assert_eq!(metadata::stream_id(&headers).as_ref(), Some(&stream.id));
    caller.send(Item::StdinFin).await;
    exits(caller, process, 0).await;
    gateway.stop().await;
}
