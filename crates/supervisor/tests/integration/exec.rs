//! Commands that really run, for a gateway that the test plays.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tempfile::TempDir;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::exec::{Command, Exit, ExitReason, Output};
use tidegate_testkit::messages::{Cause, FromGateway, FromSupervisor, RelayClose};
use tidegate_testkit::probe;
use tidegate_testkit::process::Process;
use tidegate_testkit::raw_h2::{Connection, Inbox, Outbox, Received, grpc};
use tidegate_testkit::wait::{GENEROUS, until_async, within};
use tidegate_wire::exec::{Dialect, Direction, Item, ItemReader, Start, encode};
use tidegate_wire::frame::FrameLimit;
use tidegate_wire::metadata;

use crate::common::gateway::{CAPABILITIES, Control, Gateway, Relay, claim_with};

/// Within how much nothing of a command may be left once its caller has gone.
const SOON: Duration = Duration::from_secs(5);

/// A supervisor's program, and the gateway's side of its session.
struct Bench {
    process: Process,
    control: Control,
    data: Option<Connection>,
    gateway: Gateway,
    next: usize,
}

impl Bench {
    async fn new(more: &[&str]) -> Self {
        let gateway = Gateway::start().await;
        let url = format!("http://{}", gateway.address());
        let arguments = ["--gateway", &url, "--sandbox", "box"];
        let program = env!("CARGO_BIN_EXE_tidegate-supervisor");
        let process = Process::run(program, arguments.iter().chain(more)).unwrap();
        let mut capabilities = CAPABILITIES.to_vec();
        capabilities.extend(["exec-relay-v1", "exec-result-v1", "exec-tree-v1"]);
        let heartbeat = Duration::from_secs(15);
        let control = gateway.session_of(heartbeat, &capabilities).await;
        Self {
            process,
            control,
            data: None,
            gateway,
            next: 0,
        }
    }

    /// In both ways to find descendants.
    async fn both() -> [Self; 2] {
        [
            Self::new(&["--exec-scope", "cgroup"]).await,
            Self::new(&["--exec-scope", "reaper"]).await,
        ]
    }

    /// Asks for a command, and says what to run.
    async fn run(&mut self, command: Command) -> Talk {
        self.next += 1;
        let channel = format!("c{}", self.next);
        self.control.ask_for_command(&channel).await;
        self.control.dialled(&channel).await.unwrap();
        if self.data.is_none() {
            self.data = Some(self.gateway.data().await);
        }
        let mut headers = HeaderMap::new();
        for name in [metadata::CAPABILITIES, metadata::PATH_CAPABILITIES] {
            metadata::set_capabilities(&mut headers, name, Capabilities::EXEC);
        }
        let Relay { outbox, inbox, .. } = claim_with(self.data.as_mut().unwrap(), headers).await;
        let mut talk = Talk {
            channel,
            outbox,
            inbox,
            reader: ItemReader::new(Dialect::Relay, Direction::Event, FrameLimit::Strict),
        };
        talk.send(Item::Start(Box::new(Start::new(command)))).await;
        talk
    }

    /// Ends a relay as a gateway does.
    async fn close(&mut self, talk: &Talk, reason: &str) {
        let cause = Cause {
            reason: reason.to_owned(),
            origin: "gateway".to_owned(),
            ..Cause::default()
        };
        self.control
            .say(FromGateway::RelayClose(RelayClose {
                channel_id: talk.channel.clone(),
                cause: Some(cause),
                ..RelayClose::default()
            }))
            .await;
    }
}

/// A relay of a command, as a gateway sees it.
struct Talk {
    channel: String,
    outbox: Outbox,
    inbox: Inbox,
    reader: ItemReader,
}

impl Talk {
    async fn send(&mut self, item: Item) {
        let (head, payload) = encode(Dialect::Relay, item);
        let mut message = BytesMut::from(&head[..]);
        message.extend_from_slice(&payload);
        self.outbox.send(message.freeze()).await.unwrap();
    }

    async fn hear(&mut self) -> Result<Item, Received> {
        loop {
            if let Some(item) = self.reader.next().unwrap() {
                return Ok(item);
            }
            match within(GENEROUS, "an event", self.inbox.next()).await {
                Received::Message(message) => self.reader.push(grpc::frame_bytes(0, &message)),
                end => return Err(end),
            }
        }
    }

    async fn next(&mut self) -> Item {
        self.hear().await.unwrap()
    }

    async fn starts(&mut self) {
        match self.next().await {
            Item::Started(Ok(_)) => {}
            other => panic!("{other:?} in place of a start"),
        }
    }

    /// Reads to the exit.
    async fn exit(&mut self) -> (Vec<u8>, Exit) {
        let mut stdout = Vec::new();
        loop {
            match self.next().await {
                Item::Output { output, data, .. } => {
                    assert_eq!(output, Output::Stdout);
                    stdout.extend_from_slice(&data);
                }
                Item::Exit(exit) => return (stdout, *exit),
                other => panic!("{other:?} in place of an output"),
            }
        }
    }
}

fn sh(script: &str) -> Command {
    argv(&["sh", "-c", script])
}

fn argv(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().copied().map(str::to_owned).collect(),
        ..Command::default()
    }
}

/// Two processes that sleep, one of which has left the other's session.
struct Sleepers(TempDir);

impl Sleepers {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self) -> Command {
        let dir = self.0.path().display();
        sh(&format!(
            "cd {dir}; setsid sh -c 'echo $$ >far; exec sleep 300' & echo $$ >near; \
             until [ -s far ]; do :; done; echo ready; cat >input; touch complete"
        ))
    }

    fn ids(&self) -> [u32; 2] {
        ["near", "far"].map(|name| {
            let text = std::fs::read_to_string(self.file(name)).unwrap();
            text.trim().parse().unwrap()
        })
    }

    async fn are_gone(&self) {
        let ids = self.ids();
        let gone = until_async(SOON, async || !ids.into_iter().any(probe::is_alive));
        gone.await.unwrap();
        let complete = self.file("complete");
        assert!(
            !Path::exists(&complete),
            "half of the input was taken for all"
        );
    }
}

#[tokio::test]
async fn ex_07_a_filter_takes_and_gives_at_the_same_time() {
    for mut bench in Bench::both().await {
        let mut talk = bench.run(argv(&["cat"])).await;
        talk.starts().await;
        let input = Bytes::from(vec![b'x'; 64 * 1024]);
        let Talk {
            outbox,
            mut inbox,
            mut reader,
            ..
        } = talk;
        let mut outbox = outbox;
        let writes = async {
            for _ in 0..64 {
                let (head, payload) = encode(Dialect::Relay, Item::Stdin(input.clone()));
                outbox.send(head).await.unwrap();
                outbox.send(payload).await.unwrap();
            }
            let (fin, _) = encode(Dialect::Relay, Item::StdinFin);
            outbox.send(fin).await.unwrap();
        };
        let reads = async {
            let mut total = 0;
            loop {
                match reader.next().unwrap() {
                    Some(Item::Output { data, .. }) => total += data.len(),
                    Some(Item::Exit(exit)) => return (total, exit),
                    Some(other) => panic!("{other:?}"),
                    None => match within(GENEROUS, "an event", inbox.next()).await {
                        Received::Message(it) => reader.push(grpc::frame_bytes(0, &it)),
                        end => panic!("{end:?}"),
                    },
                }
            }
        };
        let ((), (total, exit)) = tokio::join!(writes, reads);
        assert_eq!((total, exit.code), (64 * 64 * 1024, 0));
    }
}

#[tokio::test]
async fn ex_36_what_does_not_start_says_why() {
    let mut bench = Bench::new(&["--exec-limit", "2"]).await;
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let nowhere = Command {
        workdir: Some("/nowhere".to_owned()),
        ..argv(&["true"])
    };
    let cases = [
        (argv(&["no-such-program"]), "EXEC_NOT_FOUND"),
        (argv(&[plain.to_str().unwrap()]), "EXEC_NOT_EXECUTABLE"),
        (nowhere, "EXEC_BAD_WORKDIR"),
        (argv(&[]), "INVALID_REQUEST"),
    ];
    for (command, reason) in cases {
        let mut talk = bench.run(command).await;
        match talk.next().await {
            Item::Started(Err(end)) => assert_eq!(end.reason.as_str(), reason, "{end}"),
            other => panic!("{other:?}"),
        }
        let end = talk.hear().await.unwrap_err();
        assert!(matches!(end, Received::End), "{end:?}");
    }
    let mut talk = bench.run(sh("exit 127")).await;
    talk.starts().await;
    assert_eq!(talk.exit().await.1.code, 127, "the command's own");
}

#[tokio::test]
async fn more_commands_than_may_run_are_refused() {
    let mut bench = Bench::new(&["--exec-limit", "1"]).await;
    let mut first = bench.run(argv(&["cat"])).await;
    first.starts().await;
    let mut second = bench.run(argv(&["cat"])).await;
    match second.next().await {
        Item::Started(Err(end)) => assert_eq!(end.reason.as_str(), "LIMIT_EXECS"),
        other => panic!("{other:?}"),
    }
    first.send(Item::StdinFin).await;
    assert_eq!(first.exit().await.1.code, 0);
}

#[tokio::test]
async fn ex_32_a_reset_ends_the_whole_tree_and_is_no_end_of_input() {
    for mut bench in Bench::both().await {
        let sleepers = Sleepers::new();
        let mut talk = bench.run(sleepers.command()).await;
        talk.starts().await;
        talk.next().await;
        talk.send(Item::Stdin("half".into())).await;
        talk.outbox.reset(h2::Reason::CANCEL);
        sleepers.are_gone().await;
    }
}

#[tokio::test]
async fn ex_13_a_caller_that_cancels_leaves_nothing() {
    for mut bench in Bench::both().await {
        let sleepers = Sleepers::new();
        let mut talk = bench.run(sleepers.command()).await;
        talk.starts().await;
        talk.next().await;
        bench.close(&talk, "CLIENT_CANCELLED").await;
        sleepers.are_gone().await;
    }
}

#[tokio::test]
async fn ex_17_a_lost_session_leaves_nothing() {
    for mut bench in Bench::both().await {
        let sleepers = Sleepers::new();
        let mut talk = bench.run(sleepers.command()).await;
        talk.starts().await;
        talk.next().await;
        let Bench {
            process,
            control,
            data,
            gateway,
            ..
        } = bench;
        control.cut();
        sleepers.are_gone().await;
        assert!(process.is_running());
        drop((data, gateway));
    }
}

#[tokio::test]
async fn an_operator_is_not_the_caller_who_is_told_of_the_exit() {
    for mut bench in Bench::both().await {
        let sleepers = Sleepers::new();
        let mut talk = bench.run(sleepers.command()).await;
        talk.starts().await;
        talk.next().await;
        bench.close(&talk, "OPERATOR_CLOSED").await;
        let (_, exit) = talk.exit().await;
        let seen = (exit.code, exit.reason, exit.signal);
        assert_eq!(seen, (143, ExitReason::Cancelled, Some(15)));
        sleepers.are_gone().await;
        let end = talk.hear().await.unwrap_err();
        assert!(matches!(end, Received::End), "{end:?}");
    }
}

#[tokio::test]
async fn a_supervisor_that_stops_ends_its_commands_within_its_grace() {
    for scope in ["cgroup", "reaper"] {
        let mut bench = Bench::new(&["--exec-scope", scope, "--stop-grace", "300ms"]).await;
        let sleepers = Sleepers::new();
        let mut talk = bench.run(sleepers.command()).await;
        talk.starts().await;
        talk.next().await;
        let begun = Instant::now();
        bench.process.terminate();
        let goodbye = bench.control.heard().await;
        assert!(matches!(goodbye, FromSupervisor::Goodbye(_)), "{goodbye:?}");
        match bench.control.heard().await {
            FromSupervisor::RelayClose(close) => {
                assert_eq!(close.cause.unwrap().reason, "SUPERVISOR_STOPPED");
            }
            other => panic!("{other:?}"),
        }
        sleepers.are_gone().await;
        bench.process.exit(SOON).await;
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn ex_17_a_killed_supervisor_leaves_nothing() {
    for mut bench in Bench::both().await {
        let sleepers = Sleepers::new();
        let mut talk = bench.run(sleepers.command()).await;
        talk.starts().await;
        talk.next().await;
        bench.process.kill();
        sleepers.are_gone().await;
    }
}

#[tokio::test]
async fn a_signal_reaches_the_command_and_the_result_says_so() {
    let mut bench = Bench::new(&[]).await;
    let mut talk = bench
        .run(sh(
            "exec 2>/dev/null; trap 'exit 9' USR1; echo ready; while :; do sleep 0.05; done",
        ))
        .await;
    talk.starts().await;
    talk.next().await;
    talk.send(Item::StdinFin).await;
    talk.send(Item::Signal(10)).await;
    assert_eq!(talk.exit().await.1.code, 9);
}

#[tokio::test]
async fn a_signal_does_not_wait_for_a_command_that_does_not_read() {
    let mut bench = Bench::new(&[]).await;
    let mut talk = bench.run(argv(&["sleep", "300"])).await;
    talk.starts().await;
    let piece = Bytes::from(vec![b'x'; 64 * 1024]);
    for _ in 0..4 {
        talk.send(Item::Stdin(piece.clone())).await;
    }
    talk.send(Item::Signal(2)).await;
    let (_, exit) = talk.exit().await;
    assert_eq!((exit.code, exit.signal), (130, Some(2)));
}

#[tokio::test]
async fn only_what_is_configured_is_inherited() {
    let more = ["--base-environment", "GREETING=hello"];
    let mut bench = Bench::new(&more).await;
    let mut talk = bench.run(argv(&["env"])).await;
    talk.starts().await;
    let (stdout, _) = talk.exit().await;
    let mut names: Vec<&str> = std::str::from_utf8(&stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["GREETING", "PATH"]);
}

#[tokio::test]
async fn commands_that_are_switched_off_are_not_offered() {
    let gateway = Gateway::start().await;
    let url = format!("http://{}", gateway.address());
    let program = env!("CARGO_BIN_EXE_tidegate-supervisor");
    let arguments = ["--gateway", &url, "--sandbox", "box", "--exec-scope", "off"];
    let _process = Process::run(program, arguments).unwrap();
    let mut control = gateway.session().await;
    let offered = Capabilities::from_names(&control.hello.capabilities);
    assert_eq!(
        offered,
        Capabilities::SESSION.intersect(Capabilities::from_names(CAPABILITIES)),
    );
    control.ask_for_command("c1").await;
    let cause = control.dialled("c1").await.unwrap_err();
    assert_eq!(cause.reason, "CAPABILITY_REQUIRED");
}
