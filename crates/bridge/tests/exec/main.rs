//! Commands over real HTTP/2, on every hop there is: caller ─ client ─ gateway ─ supervisor ─ runner,
//! with the caller and the runner in the test's own hands.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod foreign;
mod pipe;
mod stage;

use std::time::Duration;

use bytes::Bytes;
use tidegate_bridge::{Handle, PipeReceiver, PipeSender};
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::exec::{Exit, KillScope, Output, TerminalSize};
use tidegate_lifecycle::relay::{Rank, Side};
use tidegate_lifecycle::{Capabilities, Cause};
use tidegate_wire::exec::Item;

use stage::{Call, Stage, bounded, command};

const OURS: Capabilities = Capabilities::EXEC;
const LEGACY: Capabilities = Capabilities::NONE;

#[tokio::test]
async fn ex_04_a_filter_gets_its_input_its_end_and_answers() {
    for agreed in [OURS, LEGACY] {
        let mut stage = Stage::new(agreed).await;
        let (mut caller, mut runner) = stage.run(command(false)).await;
        caller.sender.send(stdin(b"hello\n")).await.unwrap();
        caller.sender.send(Item::StdinFin).await.unwrap();
        assert_eq!(runner.hears().await, stdin(b"hello\n"));
        assert_eq!(runner.hears().await, Item::StdinFin);
        runner.writes(b"hello\n").await;
        runner.exits(0).await;
        assert_eq!(caller.hears().await, output(b"hello\n"));
        assert_eq!(caller.hears().await, exit(0));
        assert_eq!(bounded(caller.receiver.recv()).await, Ok(None));
        stage.all_finish().await;
    }
}

#[tokio::test]
async fn ex_09_the_exit_does_not_wait_for_the_end_of_stdin() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, mut runner) = stage.run(command(false)).await;
    runner.exits(3).await;
    assert_eq!(caller.hears().await, exit(3));
    assert_eq!(bounded(caller.receiver.recv()).await, Ok(None));
    stage.all_finish().await;
    stage.is_empty().await;
}

#[tokio::test]
async fn ex_36_a_command_that_does_not_start_is_a_status_without_headers() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, mut runner) = stage.start(command(false)).await;
    let end = End::new(Origin::Supervisor, Reason::ExecNotFound, "no such program");
    runner
        .sender
        .send(Item::Started(Err(Box::new(end))))
        .await
        .unwrap();
    let end = bounded(caller.receiver.recv()).await.unwrap_err();
    assert_eq!(
        (end.origin, end.reason),
        (Origin::Supervisor, Reason::ExecNotFound)
    );
    let cause = Cause::Reset {
        origin: Origin::Supervisor,
        reason: Reason::ExecNotFound,
    };
    for _ in 0..3 {
        assert_eq!(stage.outcome().await.cause(), cause);
    }
}

#[tokio::test]
async fn ex_32_a_caller_that_goes_away_is_no_end_of_stdin() {
    for agreed in [OURS, LEGACY] {
        let mut stage = Stage::new(agreed).await;
        let (mut caller, mut runner) = stage.run(command(false)).await;
        caller.sender.send(stdin(b"half")).await.unwrap();
        assert_eq!(runner.hears().await, stdin(b"half"));
        drop(caller);
        let end = bounded(runner.receiver.recv()).await.unwrap_err();
        assert_eq!(end.reason, Reason::ClientCancelled);
    }
}

#[tokio::test]
async fn ex_17_a_lost_supervisor_is_a_loss_and_no_exit() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, runner) = stage.run(command(false)).await;
    let lost = End::new(Origin::Supervisor, Reason::SupervisorLost, "lost");
    stage
        .gateway_handle()
        .await
        .told(Side::Upstream, Rank::Typed, lost);
    let end = bounded(caller.receiver.recv()).await.unwrap_err();
    assert_eq!(end.reason, Reason::SupervisorLost);
    drop(runner);
}

#[tokio::test]
async fn ex_03_output_waits_for_a_slow_reader_and_is_complete() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, mut runner) = stage.run(command(false)).await;
    let whole = Bytes::from_iter((0..8_u32 << 20).map(|at| (at >> 8 ^ at) as u8));
    let sent = whole.clone();
    let writer = async {
        let mut sent = sent;
        while !sent.is_empty() {
            runner
                .writes(&sent.split_to(sent.len().min(64 * 1024)))
                .await;
        }
        runner.exits(0).await;
    };
    let reader = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let mut heard = Vec::new();
        loop {
            match caller.hears().await {
                Item::Output { data, .. } => heard.extend_from_slice(&data),
                Item::Exit(exit) => break (heard, exit.code),
                other => panic!("{other:?}"),
            }
        }
    };
    let ((), (heard, code)) = tokio::join!(writer, reader);
    assert!(heard == whole && code == 0);
    stage.all_finish().await;
}

#[tokio::test]
async fn a_runner_that_reads_nothing_stops_the_caller_and_memory_stays_bounded() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, runner) = stage.run(command(false)).await;
    let piece = Bytes::from(vec![7; 64 * 1024]);
    let mut sent = 0;
    let stalled = async {
        loop {
            caller
                .sender
                .send(Item::Stdin(piece.clone()))
                .await
                .unwrap();
            sent += piece.len();
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(2), stalled)
            .await
            .is_err()
    );
    assert!(sent <= 8 << 20, "{sent}");
    drop((caller, runner));
}

#[tokio::test]
async fn a_flood_of_messages_without_payload_is_bounded_too() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, runner) = stage.run(command(true)).await;
    let size = TerminalSize { cols: 9, rows: 9 };
    let mut sent = 0_usize;
    let flood = async {
        loop {
            caller.sender.send(Item::Resize(size)).await.unwrap();
            sent += 1;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(3), flood)
            .await
            .is_err()
    );
    assert!(sent < 1_000_000, "{sent}");
    drop((caller, runner));
}

#[tokio::test]
async fn ex_24_signals_and_sizes_reach_the_program_after_the_end_of_stdin() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, mut runner) = stage.run(command(true)).await;
    let size = TerminalSize {
        cols: 100,
        rows: 40,
    };
    for item in [Item::StdinFin, Item::Resize(size), Item::Signal(15)] {
        caller.sender.send(item.clone()).await.unwrap();
        assert_eq!(runner.hears().await, item);
    }
    runner.exits(143).await;
    assert_eq!(caller.hears().await, exit(143));
    stage.all_finish().await;
}

#[tokio::test]
async fn without_results_an_interrupt_is_typed() {
    let mut stage = Stage::new(LEGACY).await;
    let (mut caller, mut runner) = stage.run(command(true)).await;
    caller.sender.send(Item::Signal(2)).await.unwrap();
    assert_eq!(runner.hears().await, stdin(b"\x03"));
    runner.exits(130).await;
    assert_eq!(caller.hears().await, exit(130));
}

#[tokio::test]
async fn an_operator_ends_it_and_both_sides_hear_why() {
    let mut stage = Stage::new(OURS).await;
    let (mut caller, mut runner) = stage.run(command(false)).await;
    let handle: Handle = stage.gateway_handle().await;
    handle.close(End::new(Origin::Gateway, Reason::OperatorClosed, "closed"));
    let end = bounded(caller.receiver.recv()).await.unwrap_err();
    assert_eq!(end.reason, Reason::OperatorClosed);
    assert!(bounded(runner.receiver.recv()).await.is_err());
}

/// One side's own hands.
struct Hands {
    sender: PipeSender,
    receiver: PipeReceiver,
}

impl Hands {
    async fn hears(&mut self) -> Item {
        bounded(self.receiver.recv()).await.unwrap().unwrap()
    }

    async fn writes(&mut self, data: &[u8]) {
        bounded(self.sender.send(output(data))).await.unwrap();
    }

    async fn exits(&mut self, code: i32) {
        bounded(self.sender.send(exit(code))).await.unwrap();
    }
}

impl Stage {
    /// A command that was passed on and has not answered yet.
    async fn start(&mut self, call: Call) -> (Hands, Hands) {
        let (sender, receiver) = self.call(call.clone());
        let caller = Hands { sender, receiver };
        let (sender, receiver) = self.runner().await;
        let mut runner = Hands { sender, receiver };
        let Item::Start(start) = runner.hears().await else {
            panic!("a start")
        };
        assert_eq!(start.command, call.start.command);
        (caller, runner)
    }

    /// A command that runs.
    async fn run(&mut self, call: Call) -> (Hands, Hands) {
        let (mut caller, mut runner) = self.start(call).await;
        let started = Item::Started(Ok(KillScope::Cgroup));
        runner.sender.send(started).await.unwrap();
        assert!(matches!(caller.hears().await, Item::Started(Ok(_))));
        (caller, runner)
    }

    async fn all_finish(&mut self) {
        for _ in 0..3 {
            assert_eq!(self.outcome().await.end, None);
        }
    }
}

fn stdin(data: &[u8]) -> Item {
    Item::Stdin(Bytes::copy_from_slice(data))
}

fn output(data: &[u8]) -> Item {
    Item::Output {
        output: Output::Stdout,
        data: Bytes::copy_from_slice(data),
        sequence: 1,
        order: 1,
    }
}

fn exit(code: i32) -> Item {
    Item::Exit(Box::new(Exit::exited(code)))
}
