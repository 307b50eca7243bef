//! What a command reads.

use std::time::Duration;

use bytes::Bytes;
use tidegate_supervisor::runner::Why;

use crate::common::*;

#[tokio::test]
async fn the_end_of_the_input_is_told_and_nothing_else_ends() {
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = feed(&runner, argv(&["cat"]), Bytes::from_static(b"hello\n")).await;
        assert_eq!((ran.stdout(), ran.exit.code), ("hello\n", 0));
        let script = sh("cat; sleep 1; echo done");
        let ran = feed(&runner, script, Bytes::from_static(b"hi\n")).await;
        assert_eq!((ran.stdout(), ran.exit.code), ("hi\ndone\n", 0));
        assert!(ran.took >= Duration::from_secs(1));
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn both_directions_flow_at_once() {
    let mut input = vec![0; 16 << 20];
    let mut state = 1_u32;
    for byte in &mut input {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = (state >> 24) as u8;
    }
    let input = Bytes::from(input);
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = feed(&runner, argv(&["cat"]), input.clone()).await;
        assert!(ran.stdout == input, "stdout differs");
        let ran = feed(&runner, sh("cat >&2"), input.clone()).await;
        assert!(ran.stderr == input, "stderr differs");
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn commands_need_not_read() {
    let input = Bytes::from(vec![b'x'; 1 << 20]);
    for scope in SCOPES {
        let runner = runner(scope);
        for _ in 0..100 {
            let ran = feed(&runner, sh("exit 3"), input.clone()).await;
            assert_eq!(ran.exit.code, 3);
        }
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn an_open_input_keeps_nothing_waiting() {
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = finish(runner.start(argv(&["true"])).await.unwrap()).await;
        assert!(ran.took < Duration::from_secs(2));
        // Somebody else holds the reading end, and does not read: the writer is not left waiting.
        let (_control, mut stdin, mut events) = runner
            .start(sh("sleep 30 < /dev/stdin & exit 0"))
            .await
            .unwrap()
            .split();
        let write = stdin.write(Bytes::from(vec![b'x'; 1 << 20]));
        let both = async { tokio::join!(write, collect(&mut events)).1 };
        let ran = tokio::time::timeout(Duration::from_secs(5), both)
            .await
            .unwrap();
        assert_eq!(ran.exit.code, 0);
        runner.stop_all().await;
    }
}

/// Whoever goes away has not said that its input is complete.
#[tokio::test]
async fn a_caller_that_goes_away_completes_nothing() {
    for scope in SCOPES {
        let runner = runner(scope);
        for round in 0..20 {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().display();
            // In every other round TERM is not enough.
            let trap = if round % 2 == 0 { "" } else { "trap '' TERM;" };
            let script = format!("{trap} cat > {path}/f; touch {path}/done");
            let command = tidegate_lifecycle::exec::Command {
                kill_grace: Some(Duration::from_millis(100)),
                ..sh(&script)
            };
            let mut running = runner.start(command).await.unwrap();
            running.write_stdin(Bytes::from(vec![b'x'; 1 << 19])).await;
            if round % 3 == 0 {
                running.control().kill(Why::Cancelled);
            }
            drop(running);
            eventually(Duration::from_secs(5), "the command is gone", || {
                runner.running() == 0
            })
            .await;
            assert!(!directory.path().join("done").exists(), "round {round}");
        }
        runner.stop_all().await;
    }
}

/// A command that is told nothing sees the end of its input, as one does that is told so later. A
/// terminal's input is not over: somebody may type.
#[tokio::test]
async fn an_input_can_be_over_before_it_begins() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = sh("cat; readlink /proc/self/fd/0 | cut -c 1-5");
        let mut running = runner.start_without_input(command).await.unwrap();
        // Nobody hears it.
        running.write_stdin(Bytes::from_static(b"hello\n")).await;
        running.close_stdin().await;
        let ran = finish(running).await;
        assert_eq!((ran.stdout(), ran.exit.code), ("pipe:\n", 0));

        let command = on_terminal(sh("read word; echo got $word"), 80, 24);
        let mut running = runner.start_without_input(command).await.unwrap();
        running.write_stdin(Bytes::from_static(b"it\n")).await;
        let ran = finish(running).await;
        assert!(ran.stdout().contains("got it"), "{:?}", ran.stdout());
        runner.stop_all().await;
    }
}
