//! A supervisor that is killed while commands run, and one that is process 1.

use std::path::Path;
use std::process::{Child, Command as Program};
use std::time::Duration;

use bytes::Bytes;
use tidegate_lifecycle::exec::Command;
use tidegate_supervisor::runner::Scope;

use crate::common::*;

const STAGE: &str = "TIDEGATE_TEST_STAGE";

/// Runs a test of this binary that plays the supervisor, in a process of its own.
fn play(role: &str, scope: Scope, directory: &Path, wrap: &[&str]) -> Child {
    let own = std::env::current_exe().unwrap();
    let mut words = wrap.iter().copied();
    let mut program = match words.next() {
        Some(first) => {
            let mut program = Program::new(first);
            program.args(words).arg(&own);
            program
        }
        None => Program::new(&own),
    };
    let stage = format!("{scope:?} {}", directory.display());
    program
        .args(["--exact", role, "--ignored", "--nocapture"])
        .env(STAGE, stage);
    program.spawn().unwrap()
}

fn stage() -> Option<(Scope, String)> {
    let stage = std::env::var(STAGE).ok()?;
    let (scope, directory) = stage.split_once(' ')?;
    let scope = SCOPES.into_iter().find(|it| format!("{it:?}") == scope)?;
    Some((scope, directory.to_owned()))
}

#[tokio::test]
#[ignore = "plays the supervisor that is killed"]
async fn supervisor() {
    let Some((scope, directory)) = stage() else {
        return;
    };
    let runner = runner(scope);
    // One that has ended by itself and has left something behind.
    run(&runner, sh("sleep 7050 & exit 0")).await;
    let grace = Some(Duration::from_secs(1));
    let command = |script: &str| Command {
        kill_grace: grace,
        ..sh(script)
    };
    let stubborn = command("trap '' TERM; setsid sleep 7051 & sleep 7051 & wait");
    let running = runner.start(stubborn).await.unwrap();
    let filter = command(&format!(
        "trap '' TERM; cat > {directory}/f; touch {directory}/done"
    ));
    let (_control, mut stdin, events) = runner.start(filter).await.unwrap().split();
    stdin.write(Bytes::from(vec![b'x'; 1 << 19])).await;
    let gone = runner.start(sh("cat; echo over")).await.unwrap();
    drop(gone);
    let mut closed = runner
        .start(sh(&format!("cat; touch {directory}/up; sleep 7052")))
        .await
        .unwrap();
    closed.close_stdin().await;
    std::future::pending::<()>().await;
    drop((running, events, closed));
}

#[tokio::test]
async fn nothing_outlives_a_killed_supervisor() {
    for scope in SCOPES {
        for _ in 0..5 {
            let directory = tempfile::tempdir().unwrap();
            let mut supervisor = play("lost::supervisor", scope, directory.path(), &[]);
            let up = directory.path().join("up");
            eventually(Duration::from_secs(10), "all run", || {
                up.exists() && sleepers("7051") == 2 && sleepers("7052") == 1
            })
            .await;
            let small = small_programs(supervisor.id());
            assert!(small.iter().any(|(name, _)| name == "nursery"), "{small:?}");
            supervisor.kill().unwrap();
            supervisor.wait().unwrap();
            eventually(Duration::from_secs(4), "all are gone", || {
                sleepers("7051") + sleepers("7052") == 0
                    && small.iter().all(|(_, pid)| !is_small_program(*pid))
            })
            .await;
            assert_eq!(
                sleepers("7050"),
                1,
                "what had ended by itself is left alone"
            );
            assert!(directory.path().join("f").exists());
            assert!(
                !directory.path().join("done").exists(),
                "half was taken for the whole"
            );
            // Whoever starts next has nothing to do with it either.
            runner(scope).stop_all().await;
            assert_eq!(sleepers("7050"), 1);
            Program::new("pkill")
                .args(["-f", "sleep 7050"])
                .status()
                .unwrap();
            eventually(Duration::from_secs(2), "it is gone", || {
                sleepers("7050") == 0
            })
            .await;
        }
    }
}

/// The roles and ids of a supervisor's small programs.
fn small_programs(supervisor: u32) -> Vec<(String, u32)> {
    let parent = format!("-P{supervisor}");
    let listed = Program::new("pgrep")
        .args(["-a", &parent, "-f", "tidegate-runner"])
        .output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    let pid = |line: &str| line.split(' ').next().unwrap().parse().unwrap();
    let role = |line: &str| line.split(' ').nth(3).unwrap_or_default().to_owned();
    listed.lines().map(|line| (role(line), pid(line))).collect()
}

fn is_small_program(pid: u32) -> bool {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.starts_with(b"tidegate-runner")
}

/// The watcher cannot be relied on either: whoever starts next looks around.
#[tokio::test]
async fn a_new_supervisor_ends_what_a_dead_one_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let mut supervisor = play("lost::supervisor", Scope::Cgroup, directory.path(), &[]);
    let up = directory.path().join("up");
    eventually(Duration::from_secs(10), "all run", || up.exists()).await;
    let parent = format!("-P{}", supervisor.id());
    Program::new("pkill")
        .args(["-KILL", &parent, "-f", "watcher"])
        .status()
        .unwrap();
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert_eq!(sleepers("7052"), 1, "nobody is there to end it");
    let runner = runner(Scope::Cgroup);
    assert_eq!(sleepers("7051") + sleepers("7052"), 0);
    runner.stop_all().await;
    Program::new("pkill")
        .args(["-f", "sleep 7050"])
        .status()
        .unwrap();
}

#[tokio::test]
#[ignore = "plays process 1"]
async fn init() {
    let Some((scope, directory)) = stage() else {
        return;
    };
    assert_eq!(std::process::id(), 1);
    let runner = runner(scope);
    for code in 0..20 {
        // The grandchild loses its parent, and ends soon after.
        let ran = run(&runner, sh(&format!("(sleep 0.3 &) ; exit {code}"))).await;
        assert_eq!(ran.exit.code, code);
        // Somebody else's child, and nobody else's status.
        let mut other = Program::new("sh").args(["-c", "exit 5"]).spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(other.wait().unwrap().code(), Some(5));
    }
    eventually(Duration::from_secs(6), "orphans are reaped", || {
        zombies() == 0
    })
    .await;
    runner.stop_all().await;
    std::fs::write(format!("{directory}/fine"), "").unwrap();
}

#[tokio::test]
async fn process_1_reaps_orphans_and_nobody_elses_children() {
    for scope in SCOPES {
        let directory = tempfile::tempdir().unwrap();
        let unshare = ["unshare", "--pid", "--fork", "--mount-proc"];
        let mut init = play("lost::init", scope, directory.path(), &unshare);
        let status = init.wait().unwrap();
        assert!(status.success() && directory.path().join("fine").exists());
    }
}

/// Not even the loss of its reaper lets a command run on, or leaves its caller without a result.
#[tokio::test]
async fn a_command_dies_with_its_reaper() {
    let runner = runner(Scope::Reaper);
    let running = runner.start(argv(&["sleep", "7053"])).await.unwrap();
    let parent = format!("-P{}", std::process::id());
    let killed = Program::new("pkill")
        .args(["-KILL", &parent, "-x", "tidegate-reaper"])
        .status();
    assert!(killed.unwrap().success());
    let ran = finish(running).await;
    assert_eq!((ran.exit.code, ran.exit.signal), (137, Some(9)));
    eventually(Duration::from_secs(1), "it is gone", || {
        sleepers("7053") == 0
    })
    .await;
    runner.stop_all().await;
    assert_eq!(zombies(), 0);
}
