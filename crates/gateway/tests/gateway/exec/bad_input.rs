//! What callers must not say: each gets its code and reason, and nothing else notices.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tidegate_lifecycle::exec::{Command, TerminalSize};
use tidegate_testkit::messages::FromGateway;
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{Client, grpc};
use tidegate_wire::exec::{ExecRequest, Item, Start};
use tidegate_wire::metadata::{EXEC_SANDBOX, EXEC_SANDBOX_INTERACTIVE};
use tonic::Code;

use super::{Talk, command, exits, on_terminal, request, running, supervisor};
use crate::common::{Running, Supervisor, config, is};

const VIOLATION: &str = "PROTOCOL_VIOLATION";
const INVALID: &str = "INVALID_REQUEST";

/// A gateway, and a command on the very connections that the bad input uses.
struct Bystanders {
    gateway: Running,
    client: Client,
    supervisor: Supervisor,
    command: (Talk, Talk),
}

impl Bystanders {
    async fn new() -> Self {
        let gateway = Running::start(config()).await;
        let mut supervisor = supervisor(&gateway).await;
        let client = Client::connect(gateway.addr).await.unwrap();
        let command = running(&client, &mut supervisor, command(&["cat"])).await;
        Self {
            gateway,
            client,
            supervisor,
            command,
        }
    }

    async fn are_undisturbed(mut self) {
        let (caller, process) = self.command;
        exits(caller, process, 0).await;
        self.supervisor.is_alive(self.gateway.addr).await;
        self.gateway.stop().await;
    }
}

async fn first(client: &Client, path: &str, message: Option<Bytes>) -> Outcome {
    let mut talk = Talk::silent(client, path, HeaderMap::new()).await;
    match message {
        Some(message) => talk.send_bytes(message).await,
        None => talk.outbox.finish().unwrap(),
    }
    talk.outcome().await
}

#[tokio::test]
async fn a_first_message_that_is_no_start() {
    let all = Bystanders::new().await;
    let stdin = grpc::frame_bytes(0, &[0x12, 1, b'x']);
    let unknown = grpc::frame_bytes(0, &[0x3a, 1, b'x']);
    let empty = grpc::frame_bytes(0, b"");
    let malformed = grpc::frame_bytes(0, &[0xff, 0xff]);
    let compressed = grpc::frame_bytes(1, b"x");
    for message in [
        Some(stdin),
        Some(unknown),
        Some(empty),
        Some(malformed),
        Some(compressed),
        None,
    ] {
        let outcome = first(&all.client, EXEC_SANDBOX_INTERACTIVE, message).await;
        is(&outcome, Code::InvalidArgument, VIOLATION);
    }
    let malformed = grpc::frame_bytes(0, &[0xff, 0xff]);
    for message in [Some(malformed), None] {
        let outcome = first(&all.client, EXEC_SANDBOX, message).await;
        is(&outcome, Code::InvalidArgument, VIOLATION);
    }
    all.are_undisturbed().await;
}

#[tokio::test]
async fn a_request_with_a_missing_or_bad_field_names_it() {
    let all = Bystanders::new().await;
    let good = || command(&["true"]);
    let cases = [
        ("command", command(&[])),
        ("command", command(&[""])),
        ("command", command(&["a\0b"])),
        ("command", command(&["x"; 1025])),
        (
            "environment",
            Command {
                environment: vec![("1=".to_owned(), String::new())],
                ..good()
            },
        ),
        (
            "workdir",
            Command {
                workdir: Some("x".repeat(5000)),
                ..good()
            },
        ),
        (
            "kill_grace",
            Command {
                kill_grace: Some(Duration::from_secs(31)),
                ..good()
            },
        ),
        (
            "stderr_limit",
            Command {
                stderr_limit: Some(1),
                ..on_terminal(&["sh"])
            },
        ),
    ];
    for (field, bad) in cases {
        let outcomes = [
            Talk::open(&all.client, request(bad.clone())).await,
            Talk::once(&all.client, request(bad)).await,
        ];
        for talk in outcomes {
            let outcome = talk.outcome().await;
            is(&outcome, Code::InvalidArgument, INVALID);
            assert!(outcome.message.contains(field), "{field}: {outcome:?}");
        }
    }
    let nameless = grpc::frame_bytes(0, &[0x12, 1, b'x']);
    let outcome = first(&all.client, EXEC_SANDBOX, Some(nameless)).await;
    is(&outcome, Code::InvalidArgument, INVALID);
    assert!(outcome.message.contains("sandbox"), "{outcome:?}");
    all.are_undisturbed().await;
}

#[tokio::test]
async fn messages_out_of_place_end_the_command() {
    let mut all = Bystanders::new().await;
    let start = request(command(&["second"])).encode_first();
    let unknown = grpc::frame_bytes(0, &[0x3a, 1, b'x']);
    let oversize = vec![b'x'; 64 * 1024 + 1];
    let resize = TerminalSize { cols: 1, rows: 1 };
    let cases: [(&str, Vec<Said>); 5] = [
        (VIOLATION, vec![Said::Bytes(start)]),
        (VIOLATION, vec![Said::Bytes(unknown)]),
        (
            VIOLATION,
            vec![
                Said::Item(Item::StdinFin),
                Said::Item(Item::Stdin("x".into())),
            ],
        ),
        (INVALID, vec![Said::Item(Item::Resize(resize))]),
        (
            "FRAME_TOO_LARGE",
            vec![Said::Item(Item::Stdin(oversize.into()))],
        ),
    ];
    for (reason, said) in cases {
        let cat = command(&["cat"]);
        let (mut caller, process) = running(&all.client, &mut all.supervisor, cat).await;
        for one in said {
            match one {
                Said::Bytes(bytes) => caller.send_bytes(bytes).await,
                Said::Item(item) => caller.send(item).await,
            }
        }
        let outcome = caller.outcome().await;
        assert_eq!(outcome.reason, reason, "{outcome:?}");
        // The supervisor is told why, and the relay is over.
        match all.supervisor.next().await {
            FromGateway::RelayClose(_) => {}
            other => panic!("{other:?}"),
        }
        drop(process);
    }
    all.are_undisturbed().await;
}

enum Said {
    Bytes(Bytes),
    Item(Item),
}

#[tokio::test]
async fn what_a_legacy_caller_may_not_say_is_ignored() {
    let all = Bystanders::new().await;
    let Bystanders {
        gateway,
        client,
        mut supervisor,
        command: bystander,
    } = all;
    let mut legacy = request(command(&["cat"]));
    legacy.start = Start {
        capabilities: tidegate_lifecycle::Capabilities::NONE,
        ..legacy.start
    };
    let mut caller = Talk::open(&client, legacy).await;
    let mut process = Talk::serve(&mut supervisor).await;
    process.next().await;
    process
        .send(Item::Started(Ok(tidegate_lifecycle::exec::KillScope::None)))
        .await;
    caller
        .send(Item::Resize(TerminalSize { cols: 1, rows: 1 }))
        .await;
    // Larger than peers of ours send: it arrives in pieces.
    let large = Bytes::from(vec![b'x'; 100_000]);
    caller.send(Item::Stdin(large.clone())).await;
    caller.outbox.finish().unwrap();
    let mut seen = Vec::new();
    loop {
        match process.next().await {
            Item::Stdin(data) => seen.extend_from_slice(&data),
            Item::StdinFin => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, large);
    exits(caller, process, 0).await;
    Bystanders {
        gateway,
        client,
        supervisor,
        command: bystander,
    }
    .are_undisturbed()
    .await;
}

#[tokio::test]
async fn a_caller_that_says_nothing_is_not_waited_for() {
    let gateway = Running::start(tidegate_gateway::Config {
        init_timeout: Duration::from_millis(200),
        ..config()
    })
    .await;
    let client = Client::connect(gateway.addr).await.unwrap();
    for path in [EXEC_SANDBOX, EXEC_SANDBOX_INTERACTIVE] {
        let silent = Talk::silent(&client, path, HeaderMap::new()).await;
        is(
            &silent.outcome().await,
            Code::DeadlineExceeded,
            "INIT_TIMEOUT",
        );
    }
    gateway.stop().await;
}

#[tokio::test]
async fn an_unknown_sandbox_is_told_at_once() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let nobody = ExecRequest {
        sandbox: crate::common::name("nobody"),
        ..request(command(&["true"]))
    };
    let outcome = Talk::open(&client, nobody).await.outcome().await;
    is(&outcome, Code::NotFound, "SANDBOX_NOT_FOUND");
    gateway.stop().await;
}
