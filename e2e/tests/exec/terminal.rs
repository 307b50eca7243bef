//! Commands on a terminal, and without one.

use std::time::Duration;

use tidegate_client::Reason;
use tidegate_client::exec::{Exec, Outcome, TerminalSize};
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::wait::within;

use crate::{GONE, MOMENT, argv, long_sleep, run, script, start, until_sleepers};

every_topology! {
    ex_22_without_a_terminal_there_is_none,
    ex_23_the_size_is_there_from_the_start,
    ex_24_a_resize_reaches_the_program,
    ex_26_the_end_of_stdin_is_ctrl_d,
    ex_30_an_idle_limit_counts_what_moves,
    ctrl_c_is_a_key,
}

const fn size(cols: u16, rows: u16) -> Option<TerminalSize> {
    Some(TerminalSize { cols, rows })
}

/// Reads until `text` has come, and returns all that was read.
async fn until(exec: &mut Exec, text: &str) -> String {
    let mut seen = Vec::new();
    let reading = async {
        loop {
            let all = String::from_utf8_lossy(&seen).into_owned();
            if all.contains(text) {
                return all;
            }
            match exec.events().next().await {
                Some(chunk) => seen.extend_from_slice(&chunk.data),
                None => panic!("ended without {text:?}: {all:?}"),
            }
        }
    };
    within(MOMENT, text, reading).await
}

async fn ex_22_without_a_terminal_there_is_none(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let looking =
        "for f in 0 1 2; do test -t $f && echo tty$f; done; read line; printf 'a\\n'; printf e >&2";
    let mut exec = start(&client, script(looking)).await;
    exec.input().write("q\n").await.unwrap();
    let collected = within(MOMENT, "the end", exec.collect(64)).await;
    assert_eq!(collected.stdout.data, b"a\n");
    assert_eq!(collected.stderr.data, b"e");
    assert!(collected.outcome.is_success(), "{}", collected.outcome);
    drop(exec);

    let mut exec = start(&client, argv(&["sleep", &long_sleep()])).await;
    exec.input().resize(TerminalSize { cols: 10, rows: 10 });
    let outcome = within(MOMENT, "a refusal", exec.events().wait()).await;
    let Outcome::Lost(end) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(end.reason, Reason::InvalidRequest, "{end}");
    drop((exec, client));
    world.settle().await;
}

async fn ex_23_the_size_is_there_from_the_start(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    for _ in 0..sized(20, 200) {
        let mut command = argv(&["stty", "size"]);
        command.terminal = size(132, 43);
        let mut exec = start(&client, command).await;
        let collected = within(MOMENT, "the end", exec.events().collect(64)).await;
        assert_eq!(
            collected.stdout.data, b"43 132\r\n",
            "{}",
            collected.outcome
        );
        assert!(collected.outcome.is_success(), "{}", collected.outcome);
    }
    drop(client);
    world.settle().await;
}

async fn ex_24_a_resize_reaches_the_program(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    // A trap interrupts dash's `read`, which is not the end of what is said.
    let mut command = script(
        "stty -echo; trap 'echo W' WINCH; echo ready; while :; do read -r line && eval \"$line\"; done",
    );
    command.terminal = size(80, 24);
    let mut exec = start(&client, command).await;
    until(&mut exec, "ready\r\n").await;
    exec.input().write("stty size\n").await.unwrap();
    until(&mut exec, "24 80\r\n").await;
    exec.input().resize(TerminalSize {
        cols: 100,
        rows: 40,
    });
    exec.input().write("stty size\n").await.unwrap();
    let seen = until(&mut exec, "40 100\r\n").await;
    exec.input().write("exit 3\n").await.unwrap();
    let collected = within(MOMENT, "the end", exec.events().collect(64)).await;
    let rest = String::from_utf8_lossy(&collected.stdout.data);
    let told = format!("{seen}{rest}").matches('W').count();
    assert!(told <= 1, "{seen:?} {rest:?}");
    assert!(matches!(&collected.outcome, Outcome::Exited(exit) if exit.code == 3));
    drop((exec, client));
    world.settle().await;
}

async fn ex_26_the_end_of_stdin_is_ctrl_d(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    for typed in ["hi\n", "hi"] {
        let mut command = argv(&["cat"]);
        command.terminal = size(80, 24);
        let mut exec = start(&client, command).await;
        exec.input().write(typed).await.unwrap();
        exec.input().close();
        let collected = within(GONE, "the end", exec.events().collect(64)).await;
        assert!(collected.outcome.is_success(), "{}", collected.outcome);
        let text = String::from_utf8_lossy(&collected.stdout.data);
        assert!(text.contains("hi"), "{text:?}");
    }
    drop(client);
    world.settle().await;
}

async fn ex_30_an_idle_limit_counts_what_moves(topology: Topology) {
    let options = Options::new()
        .commands()
        .gateway("idle_timeout", "2s")
        .gateway("heartbeat_interval", "300ms")
        .gateway("stream_keepalive", "300ms");
    let world = World::start(topology, options).await;
    let client = world.client();
    let time = long_sleep();
    let begun = std::time::Instant::now();
    let mut command = argv(&["sleep", &time]);
    command.terminal = size(80, 24);
    let mut exec = start(&client, command).await;
    let outcome = within(MOMENT, "the end", exec.events().wait()).await;
    let Outcome::Lost(end) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(end.reason, Reason::IdleTimeout, "{end}");
    // Not by the command's own end, which is minutes away.
    assert!(begun.elapsed() >= Duration::from_secs(2));
    until_sleepers(&time, 0, GONE).await;
    drop((exec, client));
    world.settle().await;
}

async fn ctrl_c_is_a_key(topology: Topology) {
    let world = World::start(topology, Options::new().commands()).await;
    let client = world.client();
    let mut command =
        script("trap 'echo caught; exit 4' INT; echo ready; while :; do sleep 0.05; done");
    command.terminal = size(80, 24);
    let mut exec = start(&client, command).await;
    until(&mut exec, "ready").await;
    exec.input().write(vec![3]).await.unwrap();
    until(&mut exec, "caught").await;
    let outcome = within(MOMENT, "the end", exec.events().wait()).await;
    assert!(
        matches!(&outcome, Outcome::Exited(exit) if exit.code == 4),
        "{outcome}"
    );
    drop(exec);
    assert!(run(&client, argv(&["true"])).await.outcome.is_success());
    drop(client);
    world.settle().await;
}
