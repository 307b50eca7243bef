//! Events as a tunnel brings them, without a tunnel.

use std::sync::Arc;

use tidegate_bridge::{End as _, ExecPipe, exec_pipe};
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::exec::{Exit, KillScope, Output};
use tidegate_lifecycle::id::HopName;
use tidegate_lifecycle::leg::Write;
use tidegate_transport::Buffered;
use tidegate_wire::exec::Item;
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;

use super::task::{Task, dropped};
use super::{Events, Input, Outcome};

/// What a tunnel writes to, and both halves of the exec beyond it.
fn exec() -> (ExecPipe, Input, Events) {
    let (tunnel, sender, receiver) = exec_pipe(dropped(), &Buffered::new());
    let task = Arc::new(Task::idle());
    let (_, starting) = oneshot::channel();
    let input = Input::new(sender, Arc::clone(&task));
    let events = Events::new(receiver, starting, task, HopName::new("client"));
    (tunnel, input, events)
}

fn started() -> Item {
    Item::Started(Ok(KillScope::None))
}

fn output(output: Output, text: &'static str) -> Item {
    Item::Output {
        output,
        data: text.into(),
        sequence: 0,
        order: 0,
    }
}

fn lost() -> End {
    let end = End::new(Origin::Gateway, Reason::SupervisorLost, "lost");
    end.via(&HopName::new("gw")).via(&HopName::new("client"))
}

#[tokio::test]
async fn output_comes_in_order_and_then_the_exit() {
    let (mut tunnel, _input, mut events) = exec();
    tunnel.queue(started());
    tunnel.queue(output(Output::Stderr, "a"));
    tunnel.queue(output(Output::Stdout, "b"));
    tunnel.queue(Item::Exit(Box::new(Exit::exited(3))));
    tunnel.command(Write::EndStream);
    let first = events.next().await.unwrap();
    let second = events.next().await.unwrap();
    assert_eq!((first.output, &first.data[..]), (Output::Stderr, &b"a"[..]));
    assert_eq!(
        (second.output, &second.data[..]),
        (Output::Stdout, &b"b"[..])
    );
    assert_eq!(events.next().await, None);
    assert_eq!(events.wait().await, Outcome::Exited(Exit::exited(3)));
    // It stays what it was.
    assert_eq!(events.wait().await, Outcome::Exited(Exit::exited(3)));
}

#[tokio::test]
async fn a_command_that_did_not_run_is_told_from_one_that_was_lost() {
    for runs in [false, true] {
        let (mut tunnel, _input, mut events) = exec();
        if runs {
            tunnel.queue(started());
            tunnel.queue(output(Output::Stdout, "a"));
            assert!(events.next().await.is_some());
        }
        tunnel.command(Write::Reset(Box::new(lost())));
        let outcome = events.wait().await;
        let ((false, Outcome::NotStarted(end)) | (true, Outcome::Lost(end))) = (runs, &outcome)
        else {
            panic!("{outcome}")
        };
        // The program itself is no hop to be told of.
        assert_eq!(end.hops, [HopName::new("gw")]);
    }
}

#[tokio::test]
async fn an_end_without_an_exit_is_no_success() {
    let (mut tunnel, _input, mut events) = exec();
    tunnel.queue(started());
    tunnel.command(Write::EndStream);
    assert!(matches!(events.wait().await, Outcome::Lost(_)));
}

#[tokio::test]
async fn who_cancels_is_told_that() {
    let (mut tunnel, input, mut events) = exec();
    tunnel.queue(started());
    input.cancel();
    tunnel.command(Write::Reset(Box::new(lost())));
    assert_eq!(events.wait().await, Outcome::CancelledHere);
}

#[tokio::test]
async fn each_output_is_a_reader_of_its_own() {
    let (mut tunnel, _input, events) = exec();
    tunnel.queue(started());
    for text in ["1", "2"] {
        tunnel.queue(output(Output::Stderr, text));
        tunnel.queue(output(Output::Stdout, text));
    }
    tunnel.queue(Item::Exit(Box::new(Exit::exited(0))));
    tunnel.command(Write::EndStream);
    let (mut stdout, mut stderr) = events.outputs();
    let (mut out, mut err) = (String::new(), String::new());
    let (a, b) = tokio::join!(
        stdout.read_to_string(&mut out),
        stderr.read_to_string(&mut err)
    );
    assert_eq!((a.unwrap(), b.unwrap()), (2, 2));
    assert_eq!((out.as_str(), err.as_str()), ("12", "12"));
    assert!(stdout.outcome().unwrap().is_success());
}

#[tokio::test]
async fn a_reader_that_is_dropped_holds_nothing_up() {
    let (mut tunnel, _input, events) = exec();
    tunnel.queue(started());
    tunnel.queue(output(Output::Stderr, "unwanted"));
    tunnel.queue(output(Output::Stdout, "wanted"));
    let (mut stdout, stderr) = events.outputs();
    let reading = async {
        let mut bytes = [0; 6];
        stdout.read_exact(&mut bytes).await.unwrap();
        (bytes, stdout)
    };
    let dropping = async {
        // When the other one waits already.
        tokio::task::yield_now().await;
        drop(stderr);
    };
    let ((bytes, mut stdout), ()) = tokio::join!(reading, dropping);
    assert_eq!(&bytes, b"wanted");
    // A cut is an error, and never a short end of file.
    tunnel.command(Write::Reset(Box::new(lost())));
    assert!(stdout.read_to_end(&mut Vec::new()).await.is_err());
}
