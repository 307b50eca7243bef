//! What a command leaves behind.

use std::time::Duration;

use tidegate_lifecycle::exec::Command;
use tidegate_supervisor::runner::{Runner, RunnerConfig};

use crate::common::*;

#[tokio::test]
async fn what_is_left_behind_keeps_nobody_waiting() {
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = run(&runner, sh("sleep 7001 & echo STARTED")).await;
        assert_eq!((ran.stdout(), ran.exit.code), ("STARTED\n", 0));
        assert!(ran.took >= Duration::from_millis(240) && ran.took < Duration::from_secs(2));
        assert!(ran.exit.stdout.held_open && ran.exit.stderr.held_open);
        assert_eq!(sleepers("7001"), 1);
        runner.stop_all().await;
        assert_eq!(sleepers("7001"), 1, "it outlives the runner");
        std::process::Command::new("pkill")
            .args(["-f", "sleep 7001"])
            .status()
            .unwrap();
    }
}

/// However much the others write: 250 ms after the command's end it is over.
#[tokio::test]
async fn who_goes_on_writing_does_not_prolong_it() {
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = run(&runner, sh("yes 7004 & echo STARTED")).await;
        assert!(ran.took < Duration::from_secs(2), "{:?}", ran.took);
        assert!(ran.exit.stdout.held_open && !ran.exit.stdout.truncated);
        assert_eq!(ran.exit.stdout.total, ran.stdout.len() as u64);
        std::process::Command::new("pkill")
            .args(["-f", "yes 7004"])
            .status()
            .unwrap();
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn who_finishes_in_time_is_heard() {
    for scope in SCOPES {
        let runner = runner(scope);
        let ran = run(&runner, sh("(sleep 0.1; echo late) & echo now")).await;
        assert_eq!(ran.stdout(), "now\nlate\n");
        assert!(!ran.exit.stdout.held_open);
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn what_is_left_behind_does_not_die_of_its_outputs() {
    for scope in SCOPES {
        let runner = runner(scope);
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let scripts: Vec<_> = (0..10).map(|it| it.to_string()).collect();
        for name in &scripts {
            let alive = path(name);
            let alive = alive.display();
            let command = sh(&format!(
                "(sleep 1; seq 1 30000 && touch {alive}) & echo now"
            ));
            assert_eq!(run(&runner, command).await.stdout(), "now\n");
        }
        let all = || scripts.iter().all(|name| path(name).exists());
        eventually(Duration::from_secs(6), "all have written on", all).await;
        runner.stop_all().await;
    }
}

/// Beyond so many outputs nobody reads on.
#[tokio::test]
async fn only_so_many_outputs_are_read_on() {
    for scope in SCOPES {
        let config = RunnerConfig {
            held_pipes: 0,
            ..config(scope)
        };
        let runner = Runner::new(config).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display();
        let script = format!("(sleep 0.5; echo x; touch {path}/alive) 2>&1 & sleep 0; echo now");
        run(&runner, sh(&format!("{script}; sleep 0"))).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        // The shell's `echo` fails; without SIGPIPE's default action it would go on.
        assert!(!directory.path().join("alive").exists());
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn the_tree_ends_with_its_command_if_that_is_asked_for() {
    for scope in SCOPES {
        let runner = runner(scope);
        for _ in 0..10 {
            let command = Command {
                kill_background: true,
                ..sh("setsid sleep 7002 & (trap '' TERM; sleep 7003) & sleep 0.1; exit 4")
            };
            let command = Command {
                kill_grace: Some(Duration::from_millis(300)),
                ..command
            };
            let ran = run(&runner, command).await;
            assert_eq!((ran.exit.code, ran.exit.leftover), (4, 0));
            assert_eq!((sleepers("7002"), sleepers("7003")), (0, 0));
        }
        runner.stop_all().await;
    }
}
