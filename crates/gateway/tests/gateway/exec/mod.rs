//! Commands, asked for by a raw client and run by a raw supervisor.

mod bad_input;
mod doors;
mod endings;
mod limits;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tidegate_lifecycle::exec::{Command, Exit, KillScope, Output, TerminalSize};
use tidegate_testkit::messages::{Hello, RelayInit};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{Client, Inbox, Outbox, Received, grpc};
use tidegate_testkit::wait::{self, GENEROUS};
use tidegate_wire::exec::{Dialect, Direction, ExecRequest, Item, ItemReader, Start, encode};
use tidegate_wire::frame::FrameLimit;
use tidegate_wire::metadata::{EXEC_SANDBOX, EXEC_SANDBOX_INTERACTIVE};

use crate::common::{Answer, Relay, Running, STREAM, Supervisor, hello, name, names};

/// What both ends of a command offer on top of a stream's.
const RESULTS: [&str; 2] = ["exec-result-v1", "exec-tree-v1"];

/// A supervisor that runs commands.
pub(crate) async fn supervisor(gateway: &Running) -> Supervisor {
    let mut capabilities = hello("known").capabilities;
    capabilities.extend(names(&RESULTS));
    capabilities.extend(names(&["exec-relay-v1"]));
    let hello = Hello {
        capabilities,
        ..hello("known")
    };
    Supervisor::greet(gateway.addr, hello).await
}

pub(crate) fn command(argv: &[&str]) -> Command {
    Command {
        argv: names(argv),
        ..Command::default()
    }
}

fn on_terminal(argv: &[&str]) -> Command {
    Command {
        terminal: Some(TerminalSize::default()),
        ..command(argv)
    }
}

pub(crate) fn request(command: Command) -> ExecRequest {
    ExecRequest {
        sandbox: name("known"),
        start: Start::new(command),
    }
}

/// One hop of a command, item by item.
pub(crate) struct Talk {
    pub(crate) outbox: Outbox,
    answer: Answer,
    dialect: Dialect,
    reader: ItemReader,
}

impl Talk {
    /// Asks for a command through the interactive door.
    pub(crate) async fn open(client: &Client, request: ExecRequest) -> Self {
        let mut talk = Self::silent(client, EXEC_SANDBOX_INTERACTIVE, HeaderMap::new()).await;
        talk.send_bytes(request.encode_first()).await;
        talk
    }

    /// Asks for a command through the door with one request.
    pub(crate) async fn once(client: &Client, request: ExecRequest) -> Self {
        let mut talk = Self::silent(client, EXEC_SANDBOX, HeaderMap::new()).await;
        talk.send_bytes(request.encode()).await;
        talk.outbox.finish().unwrap();
        talk
    }

    /// Opens a call and sends nothing on it.
    async fn silent(client: &Client, path: &str, metadata: HeaderMap) -> Self {
        let call = client.open(path, metadata).await.unwrap();
        Self {
            outbox: call.outbox,
            answer: Answer::Waiting(call.response),
            dialect: Dialect::Client,
            reader: ItemReader::new(Dialect::Client, Direction::Event, FrameLimit::Strict),
        }
    }

    /// Takes the next request for a relay and claims it, as a supervisor.
    pub(crate) async fn serve(supervisor: &mut Supervisor) -> Self {
        let channel = supervisor.asked().await.channel_id;
        supervisor.answer(&channel, None).await;
        Self::claim(supervisor, &channel).await
    }

    async fn claim(supervisor: &Supervisor, channel: &str) -> Self {
        let mut capabilities = names(&STREAM);
        capabilities.extend(names(&RESULTS));
        let init = RelayInit {
            capabilities,
            ..supervisor.relay_init(channel)
        };
        let Relay { outbox, answer } = supervisor.claim(init).await;
        Self {
            outbox,
            answer,
            dialect: Dialect::Relay,
            reader: ItemReader::new(Dialect::Relay, Direction::Input, FrameLimit::Strict),
        }
    }

    pub(crate) async fn send(&mut self, item: Item) {
        let (head, payload) = encode(self.dialect, item);
        let mut message = BytesMut::from(&head[..]);
        message.extend_from_slice(&payload);
        self.send_bytes(message.freeze()).await;
    }

    async fn send_bytes(&mut self, bytes: Bytes) {
        // A call that is over takes nothing, which its end tells.
        let _ = self.outbox.send(bytes).await;
    }

    pub(crate) async fn inbox(&mut self) -> &mut Inbox {
        self.answer.inbox().await
    }

    pub(crate) async fn next(&mut self) -> Item {
        loop {
            if let Some(item) = self.reader.next().unwrap() {
                return item;
            }
            let inbox = self.answer.inbox().await;
            match wait::within(GENEROUS, "an item", inbox.next()).await {
                Received::Message(message) => self.reader.push(grpc::frame_bytes(0, &message)),
                other => panic!("expected an item, got {other:?}"),
            }
        }
    }

    pub(crate) async fn outcome(self) -> Outcome {
        wait::within(GENEROUS, "the end", self.answer.outcome()).await
    }
}

/// A command that runs: the caller's side, and the process's.
pub(crate) async fn running(
    client: &Client,
    supervisor: &mut Supervisor,
    command: Command,
) -> (Talk, Talk) {
    let mut caller = Talk::open(client, request(command)).await;
    let mut process = Talk::serve(supervisor).await;
    let Item::Start(_) = process.next().await else {
        panic!("no start");
    };
    process.send(Item::Started(Ok(KillScope::Cgroup))).await;
    caller.inbox().await;
    (caller, process)
}

pub(crate) fn stdout(data: &'static str, sequence: u64) -> Item {
    Item::Output {
        output: Output::Stdout,
        data: data.into(),
        sequence,
        order: sequence,
    }
}

pub(crate) fn exit(code: i32) -> Item {
    Item::Exit(Box::new(Exit::exited(code)))
}

/// Lets a command exit, and checks that both sides end well.
pub(crate) async fn exits(mut caller: Talk, mut process: Talk, code: i32) {
    process.send(exit(code)).await;
    assert_eq!(caller.next().await, exit(code));
    assert!(caller.outcome().await.is_ok());
    assert!(process.outcome().await.is_ok());
}
