//! The process that launchers and reapers are copies of.

use std::process::Command as Program;

use bytes::Bytes;
use tidegate_supervisor::runner::Scope;

use crate::common::*;

fn kill_nursery() {
    let parent = format!("-P{}", std::process::id());
    let killed = Program::new("pkill")
        .args(["-KILL", &parent, "-x", "tidegate-nurse"])
        .status();
    assert!(killed.unwrap().success(), "it was there");
}

#[tokio::test]
async fn one_that_is_killed_is_replaced_and_commands_live_on() {
    for scope in SCOPES {
        let runner = runner(scope);
        let before = runner.start(sh("cat; echo over")).await.unwrap();
        let (_control, mut stdin, mut events) = before.split();
        stdin.write(Bytes::from_static(b"still here\n")).await;
        for code in 1..4 {
            kill_nursery();
            let ran = run(&runner, sh(&format!("exit {code}"))).await;
            assert_eq!(ran.exit.code, code);
        }
        stdin.close().await;
        let ran = collect(&mut events).await;
        assert_eq!(ran.stdout, b"still here\nover\n");
        runner.stop_all().await;
        assert_eq!(zombies(), 0);
    }
}

#[tokio::test]
async fn a_command_is_born_in_its_cgroup_and_nowhere_else_is_anybody() {
    let runner = runner(Scope::Cgroup);
    let ran = run(&runner, sh("cat /proc/self/cgroup")).await;
    let text = String::from_utf8(ran.stdout).unwrap();
    let path = text.lines().find_map(|line| line.strip_prefix("0::"));
    assert!(path.unwrap().contains("/exec-"), "{text}");
    runner.stop_all().await;
}
