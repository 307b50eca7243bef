//! Many commands: nothing is lost, nothing leaks.

use std::time::Duration;

use bytes::Bytes;
use tidegate_supervisor::runner::Why;
use tokio::task::JoinSet;

use crate::common::*;

#[tokio::test]
async fn many_commands_leave_nothing() {
    for scope in SCOPES {
        let runner = runner(scope);
        run(&runner, argv(&["true"])).await;
        let before = open_files();
        for _ in 0..10 {
            let mut all = JoinSet::new();
            for index in 0..20 {
                let runner = runner.clone();
                all.spawn(async move {
                    if index % 2 == 0 {
                        let running = runner.start(sh("sleep 7040 & sleep 7040")).await.unwrap();
                        if index % 4 == 0 {
                            running.control().kill(Why::Cancelled);
                            finish(running).await;
                        }
                    } else {
                        let ran =
                            feed(&runner, argv(&["cat"]), Bytes::from(vec![b'x'; 100_000])).await;
                        assert_eq!((ran.stdout.len(), ran.exit.code), (100_000, 0));
                    }
                });
            }
            while let Some(done) = all.join_next().await {
                done.unwrap();
            }
        }
        eventually(Duration::from_secs(5), "all are gone", || {
            sleepers("7040") == 0
        })
        .await;
        eventually(Duration::from_secs(5), "nobody minds them", || {
            runner.running() == 0
        })
        .await;
        eventually(Duration::from_secs(5), "files are closed", || {
            open_files() <= before
        })
        .await;
        eventually(Duration::from_secs(5), "nobody is a zombie", || {
            zombies() == 0
        })
        .await;
        runner.stop_all().await;
        assert_eq!(zombies(), 0);
    }
}

#[tokio::test]
async fn many_short_commands_tell_the_truth() {
    for scope in SCOPES {
        let runner = runner(scope);
        for index in 0..150 {
            let code = index % 100;
            let ran = run(
                &runner,
                sh(&format!("echo {index}; echo e{index} >&2; exit {code}")),
            )
            .await;
            assert_eq!(ran.stdout(), format!("{index}\n"));
            assert_eq!(ran.stderr, format!("e{index}\n").into_bytes());
            assert_eq!(ran.exit.code, code);
            assert!(!ran.exit.stdout.held_open);
        }
        runner.stop_all().await;
    }
}
