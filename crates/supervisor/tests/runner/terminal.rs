//! Commands on a terminal.

use std::time::Duration;

use bytes::Bytes;
use tidegate_lifecycle::exec::{Command, TerminalSize};
use tidegate_supervisor::runner::{Event, Events};

use crate::common::*;

#[tokio::test]
async fn the_size_is_there_from_the_start() {
    for scope in SCOPES {
        let runner = runner(scope);
        for _ in 0..100 {
            let ran = finish(
                runner
                    .start(on_terminal(argv(&["stty", "size"]), 132, 43))
                    .await
                    .unwrap(),
            )
            .await;
            assert_eq!((ran.stdout(), ran.exit.code), ("43 132\r\n", 0));
            assert!(!ran.exit.stdout.held_open);
        }
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn without_one_there_is_none() {
    for scope in SCOPES {
        let runner = runner(scope);
        let script = "for f in 0 1 2; do test -t $f && echo tty$f; done; \
                      true < /dev/tty && echo found; printf 'a\\n'; printf e >&2";
        let ran = feed(
            &runner,
            sh(&format!("{{ {script}; }} 2>&1 | grep -v /dev/tty")),
            Bytes::from_static(b"q\n"),
        )
        .await;
        assert_eq!(ran.stdout(), "a\ne\n");
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn a_new_size_is_told() {
    for scope in SCOPES {
        let runner = runner(scope);
        let script = "trap 'echo W; stty size' WINCH; stty size; while :; do sleep 0.05; done";
        let (control, _stdin, mut events) = runner
            .start(on_terminal(sh(script), 80, 24))
            .await
            .unwrap()
            .split();
        wait_for(&mut events, "24 80").await;
        control
            .resize(TerminalSize {
                cols: 100,
                rows: 40,
            })
            .unwrap();
        assert_eq!(
            wait_for(&mut events, "40 100").await.matches('W').count(),
            1
        );
        control.signal(28).unwrap();
        wait_for(&mut events, "40 100").await;
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn the_end_of_the_input_is_a_character() {
    for scope in SCOPES {
        let runner = runner(scope);
        for input in ["hi\n", "hi", ""] {
            let command = on_terminal(argv(&["cat"]), 80, 24);
            let ran = feed(&runner, command, Bytes::from_static(input.as_bytes())).await;
            assert_eq!(ran.exit.code, 0);
            assert!(ran.stdout().contains(input.trim_end()));
            assert!(
                ran.took < Duration::from_secs(2),
                "{:?} after {input:?}",
                ran.took
            );
        }
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn in_raw_mode_nothing_is_written_for_it() {
    for scope in SCOPES {
        let runner = runner(scope);
        let script = "stty raw -echo; echo up; timeout 0.5 od -An -c; echo over";
        let (_control, mut stdin, mut events) = runner
            .start(on_terminal(sh(script), 80, 24))
            .await
            .unwrap()
            .split();
        wait_for(&mut events, "up").await;
        stdin.write(Bytes::from_static(b"x")).await;
        stdin.close().await;
        let ran = collect_text(&mut events).await;
        assert!(!ran.contains("004"), "{ran:?}");
        runner.stop_all().await;
    }
}

async fn collect_text(events: &mut Events) -> String {
    let mut text = String::new();
    while let Some(event) = events.next().await {
        if let Event::Output { data, .. } = event {
            text.push_str(&String::from_utf8_lossy(&data));
        }
    }
    text
}

#[tokio::test]
async fn signals_reach_the_foreground() {
    for scope in SCOPES {
        let runner = runner(scope);
        // Job control: the command in the foreground has a group of its own.
        let script = "set -m; sh -c 'trap \"echo inner; exit 5\" INT; echo up; \
                      while :; do sleep 0.05; done'; echo \"outer $?\"";
        let (control, _stdin, mut events) = runner
            .start(on_terminal(sh(script), 80, 24))
            .await
            .unwrap()
            .split();
        wait_for(&mut events, "up").await;
        control.signal(2).unwrap();
        let seen = wait_for(&mut events, "outer").await;
        assert!(seen.contains("inner"), "{seen:?}");
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn the_last_words_before_the_end_are_kept() {
    for scope in SCOPES {
        let runner = runner(scope);
        for _ in 0..50 {
            let command = on_terminal(argv(&["seq", "1", "3000"]), 80, 24);
            let ran = finish(runner.start(command).await.unwrap()).await;
            assert!(ran.stdout().ends_with("\r\n3000\r\n"));
            assert_eq!(ran.stdout.len(), 13_893 + 3000);
        }
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn what_holds_a_terminal_keeps_nobody_waiting() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = on_terminal(sh("trap '' HUP; sleep 7030 & echo up"), 80, 24);
        let ran = finish(runner.start(command).await.unwrap()).await;
        assert_eq!(ran.stdout(), "up\r\n");
        assert!(ran.exit.stdout.held_open && ran.took < Duration::from_secs(2));
        std::process::Command::new("pkill")
            .args(["-f", "sleep 7030"])
            .status()
            .unwrap();
        runner.stop_all().await;
    }
}

/// An interactive shell takes no notice of TERM.
#[tokio::test]
async fn a_shell_goes_when_its_terminal_does() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = Command {
            kill_grace: Some(Duration::from_secs(20)),
            environment: vec![("PS1".to_owned(), "ready> ".to_owned())],
            ..on_terminal(argv(&["bash", "--norc", "-i"]), 80, 24)
        };
        let (control, mut stdin, mut events) = runner.start(command).await.unwrap().split();
        wait_for(&mut events, "ready> ").await;
        stdin.write(Bytes::from_static(b"sleep 7031\n")).await;
        eventually(Duration::from_secs(5), "the job runs", || {
            sleepers("7031") == 1
        })
        .await;
        drop((control, stdin, events));
        eventually(Duration::from_secs(5), "the shell is gone", || {
            runner.running() == 0
        })
        .await;
        assert_eq!(sleepers("7031"), 0);
        runner.stop_all().await;
    }
}
