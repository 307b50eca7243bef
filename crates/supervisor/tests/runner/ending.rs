//! Commands that are made to end, and all that belongs to them.

use std::time::{Duration, Instant};

use tidegate_lifecycle::exec::{Command, ExitReason};
use tidegate_supervisor::runner::{Event, Runner, Why};

use crate::common::*;

const SOON: Duration = Duration::from_secs(5);

async fn nobody_left(runner: &Runner, numbers: &[&str]) {
    let gone = || numbers.iter().all(|number| sleepers(number) == 0);
    eventually(SOON, "the tree is gone", gone).await;
    eventually(SOON, "nobody minds it", || runner.running() == 0).await;
}

#[tokio::test]
async fn a_timeout_is_a_result() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = Command {
            timeout: Some(Duration::from_millis(500)),
            ..argv(&["sleep", "7010"])
        };
        let ran = run(&runner, command).await;
        assert_eq!(
            (ran.exit.code, ran.exit.reason),
            (124, ExitReason::TimedOut)
        );
        assert_eq!((ran.exit.signal, ran.exit.leftover), (Some(15), 0));
        assert!(ran.took < Duration::from_secs(2), "{:?}", ran.took);
        nobody_left(&runner, &["7010"]).await;
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn who_ignores_term_is_killed() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = Command {
            timeout: Some(Duration::from_millis(500)),
            kill_grace: Some(Duration::from_millis(500)),
            ..sh("trap '' TERM; sleep 7011 & wait")
        };
        let ran = run(&runner, command).await;
        assert_eq!(
            (ran.exit.code, ran.exit.reason),
            (124, ExitReason::TimedOut)
        );
        assert_eq!(ran.exit.signal, Some(9));
        assert!(ran.took >= Duration::from_millis(990) && ran.took < Duration::from_secs(2));
        assert_eq!(sleepers("7011"), 0);
        runner.stop_all().await;
    }
}

/// What a command says while it ends is heard.
#[tokio::test]
async fn last_words_are_heard() {
    for scope in SCOPES {
        let runner = runner(scope);
        let command = Command {
            timeout: Some(Duration::from_millis(300)),
            ..sh("trap 'echo bye; exit 7' TERM; sleep 7012 & wait; wait")
        };
        let ran = run(&runner, command).await;
        assert_eq!((ran.stdout(), ran.exit.code), ("bye\n", 124));
        assert_eq!(ran.exit.signal, None);
        nobody_left(&runner, &["7012"]).await;
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn someone_elses_wish_is_a_result() {
    for scope in SCOPES {
        let runner = runner(scope);
        let running = runner.start(argv(&["sleep", "7013"])).await.unwrap();
        running.control().kill(Why::Cancelled);
        running.control().kill(Why::Timeout);
        let ran = finish(running).await;
        assert_eq!(
            (ran.exit.code, ran.exit.reason),
            (143, ExitReason::Cancelled)
        );
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn dropping_ends_the_whole_tree() {
    for scope in SCOPES {
        let runner = runner(scope);
        let script = "setsid sleep 7014 & (setsid sh -c 'sleep 7015 & exec sleep 7016' &) ; \
                      nohup sleep 7017 >/dev/null & echo up; exec sleep 7018";
        for _ in 0..10 {
            let command = Command {
                kill_grace: Some(Duration::from_millis(200)),
                ..sh(script)
            };
            let mut running = runner.start(command).await.unwrap();
            assert!(matches!(running.next().await, Some(Event::Output { .. })));
            drop(running);
            nobody_left(&runner, &["7014", "7015", "7016", "7017", "7018"]).await;
        }
        runner.stop_all().await;
        assert_eq!(zombies(), 0);
    }
}

/// A start that nobody waits for leaves nothing running.
#[tokio::test]
async fn a_start_can_be_given_up_at_any_time() {
    for scope in SCOPES {
        let runner = runner(scope);
        for step in 0..60 {
            let start = runner.start(argv(&["sleep", "7019"]));
            let patience = Duration::from_micros(100 * step);
            drop(tokio::time::timeout(patience, start).await);
        }
        nobody_left(&runner, &["7019"]).await;
        runner.stop_all().await;
        assert_eq!(zombies(), 0);
    }
}

/// Every child forks and leaves: whoever searches is always late, and catches them all the same.
#[tokio::test]
async fn who_runs_away_is_caught() {
    // So many generations that it ends by itself if it is not caught.
    let script = "R='[ $N -gt 0 ] || exit; N=$((N - 1)); sleep 0.005; (setsid sh -c \"$R\" &); \
                  exec sleep 7020'; N=400; export R N; sh -c \"$R\"";
    for scope in SCOPES {
        let runner = runner(scope);
        let command = Command {
            kill_grace: Some(Duration::from_millis(50)),
            ..sh(script)
        };
        let running = runner.start(command).await.unwrap();
        eventually(SOON, "they run", || sleepers("7020") > 10).await;
        running.control().kill(Why::Cancelled);
        let ran = finish(running).await;
        assert_eq!((ran.exit.leftover, sleepers("7020")), (0, 0));
        runner.stop_all().await;
    }
}

#[tokio::test]
async fn signals_reach_the_group() {
    for scope in SCOPES {
        let runner = runner(scope);
        let script = "trap 'echo usr1' USR1; trap 'echo int; exit 9' INT; echo up; \
                      while :; do sleep 0.05; done";
        let running = runner.start(sh(script)).await.unwrap();
        let (control, _stdin, mut events) = running.split();
        wait_for(&mut events, "up\n").await;
        control.signal(10).unwrap();
        wait_for(&mut events, "usr1\n").await;
        assert!(control.signal(0).is_err() && control.signal(4000).is_err());
        assert!(control.resize(Default::default()).is_err());
        control.signal(2).unwrap();
        let ran = collect_rest(&mut events).await;
        assert_eq!((ran.code, ran.reason), (9, ExitReason::Exited));
        control.signal(15).unwrap();
        runner.stop_all().await;
    }
}

async fn collect_rest(
    events: &mut tidegate_supervisor::runner::Events,
) -> tidegate_lifecycle::exec::Exit {
    loop {
        if let Event::Exit(exit) = events.next().await.unwrap() {
            return exit;
        }
    }
}

#[tokio::test]
async fn stopping_ends_everything() {
    for scope in SCOPES {
        let runner = runner(scope);
        let mut all = Vec::new();
        for _ in 0..5 {
            all.push(runner.start(sh("sleep 7021 & sleep 7021")).await.unwrap());
        }
        let begin = Instant::now();
        runner.stop_all().await;
        assert!(begin.elapsed() < Duration::from_secs(4));
        assert_eq!((sleepers("7021"), zombies()), (0, 0));
        for running in all {
            let ran = finish(running).await;
            assert_eq!(
                (ran.exit.code, ran.exit.reason),
                (143, ExitReason::Cancelled)
            );
        }
    }
}
