//! What a command writes.

use std::time::Duration;

use tidegate_lifecycle::exec::{Command, Summary};
use tidegate_supervisor::runner::Event;

use crate::common::*;

fn whole(total: u64) -> Summary {
    Summary {
        total,
        sent: total,
        ..Summary::default()
    }
}

#[tokio::test]
async fn every_byte_arrives() {
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = run(&runner, argv(&["seq", "1", "2000000"])).await;
        assert_eq!(ran.stdout.len(), 14_888_896);
        assert!(ran.stdout.ends_with(b"\n2000000\n"));
        assert_eq!(ran.exit.stdout, whole(14_888_896));
        let ran = run(&runner, sh("printf ' \\n\\0\\377'; printf e >&2")).await;
        assert_eq!(
            (ran.stdout, ran.stderr),
            (b" \n\0\xFF".to_vec(), b"e".to_vec())
        );
        let ran = run(&runner, argv(&["true"])).await;
        assert_eq!((ran.exit.stdout, ran.exit.stderr), (whole(0), whole(0)));
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn a_slow_reader_slows_the_command_and_misses_nothing() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = argv(&["head", "-c", "8388608", "/dev/zero"]);
        let (_control, _stdin, mut events) = runner.start(command).await.unwrap().split();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut total = 0;
        loop {
            match events.next().await.unwrap() {
                Event::Output { data, .. } => total += data.len(),
                Event::Exit(exit) => {
                    assert_eq!((total, exit.code), (8_388_608, 0));
                    assert_eq!(exit.stdout, whole(8_388_608));
                    assert!(exit.duration >= Duration::from_secs(1));
                    break;
                }
            }
        }
        runner.stop_all().await;
    }
}

/// The command is long gone when its output is read: what it wrote is still there.
#[tokio::test]
async fn a_late_reader_misses_nothing() {
    for scope in SCOPES {
        let runner = runner(scope);
        for script in [
            "seq 1 5000; seq 1 4000 >&2",
            "seq 1 5000; seq 1 4000 >&2; sleep 30 &",
        ] {
            let (_control, _stdin, mut events) = runner.start(sh(script)).await.unwrap().split();
            tokio::time::sleep(Duration::from_millis(700)).await;
            let ran = collect(&mut events).await;
            assert_eq!((ran.stdout.len(), ran.stderr.len()), (23_893, 18_893));
            assert!(ran.took < Duration::from_millis(200), "{:?}", ran.took);
            assert_eq!(ran.exit.stdout.held_open, script.contains("sleep"));
        }
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn a_budget_cuts_and_says_so() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = Command {
            stdout_limit: Some(1000),
            stderr_limit: Some(3),
            ..sh("printf 'a🦀b' >&2; seq 1 200000")
        };
        let ran = run(&runner, command).await;
        assert_eq!((ran.stdout.len(), ran.stderr.as_slice()), (1000, &b"a"[..]));
        let (out, err) = (ran.exit.stdout, ran.exit.stderr);
        assert_eq!(
            (out.total, out.truncated, out.held_open),
            (1_288_895, true, false)
        );
        assert_eq!((err.total, err.truncated, err.held_open), (6, true, false));
        let command = Command {
            stdout_limit: Some(4),
            ..sh("printf abcd")
        };
        assert_eq!(run(&runner, command).await.exit.stdout, whole(4));
        let command = Command {
            stdout_limit: Some(0),
            ..sh("printf abcd")
        };
        let out = run(&runner, command).await.exit.stdout;
        assert_eq!((out.total, out.sent, out.truncated), (4, 0, true));
        runner.stop_all().await;
    }
}

/// Past its budget an output is drained although nobody asks for anything.
#[tokio::test]
async fn a_cut_output_does_not_block_its_command() {
    for scope in SCOPES {
        let runner = runner(scope);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("done");
        let command = Command {
            stderr_limit: Some(0),
            ..sh(&format!(
                "seq 1 200000 >&2; touch {}; echo out",
                path.display()
            ))
        };
        let (_control, _stdin, mut events) = runner.start(command).await.unwrap().split();
        let first = tokio::time::timeout(Duration::from_millis(300), events.next()).await;
        drop(first);
        eventually(Duration::from_secs(5), "stderr was drained", || {
            path.exists()
        })
        .await;
        let (out, exit) = loop {
            if let Event::Exit(exit) = events.next().await.unwrap() {
                break (exit.stdout, exit.stderr);
            }
        };
        assert_eq!((out.total, exit.total, exit.sent), (4, 1_288_895, 0));
        runner.stop_all().await;
    }
}

/// With a budget that is used up, an output that is held does not hold the result.
#[tokio::test]
async fn a_cut_output_may_be_held() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = Command {
            stdout_limit: Some(2),
            ..sh("(while sleep 0.01; do echo more || exit; done) & echo first; exit 5")
        };
        let ran = run(&runner, command).await;
        assert_eq!((ran.exit.code, ran.stdout()), (5, "fi"));
        assert!(ran.exit.stdout.held_open && ran.exit.stdout.truncated);
        assert!(ran.took < Duration::from_secs(2));
        run(&runner, argv(&["pkill", "-f", "sleep 0.01; do echo more"])).await;
        runner.stop_all().await;
    }
}
