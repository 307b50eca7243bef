//! A path that is lost is never an exit, and what ran at its end does not run on.

use std::time::Instant;

use tidegate_client::Reason;
use tidegate_client::exec::Outcome;
use tidegate_e2e::command::Running;
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::fault_proxy::{Direction, Ending};
use tidegate_testkit::wait::{GENEROUS, within};

use crate::{
    ENDED, GONE, MOMENT, NONE_YET, argv, cli, long_sleep, run, script, start, until_sleepers,
};

every_topology! {
    ex_17_a_killed_supervisor_is_no_exit,
    ex_17_a_killed_gateway_is_no_exit,
    ex_17_a_cut_line_is_no_exit,
    ex_19_a_session_that_resets_takes_its_commands_with_it,
}

fn options() -> Options {
    Options::new()
        .commands()
        .expect_warning(ENDED)
        .expect_warning(NONE_YET)
}

async fn ex_17_a_killed_supervisor_is_no_exit(topology: Topology) {
    for scope in ["auto", "reaper"] {
        let options = options().supervisor("exec_scope", scope);
        let mut world = World::start(topology, options).await;
        let (time, away) = (long_sleep(), long_sleep());
        let both = format!("setsid sleep {away} & sleep {time}");
        let running = Running::start(cli(&world, &[], &["sh", "-c", &both]));
        until_sleepers(&time, 1, MOMENT).await;
        until_sleepers(&away, 1, MOMENT).await;
        let begun = Instant::now();
        world.kill_supervisor().await;
        let finished = running.finish(MOMENT).await;
        assert!(begun.elapsed() < GONE);
        assert_eq!(finished.code(), Some(125), "{finished:?}");
        assert!(
            finished.stderr.contains("SUPERVISOR_LOST"),
            "{}",
            finished.stderr
        );
        until_sleepers(&time, 0, GONE).await;
        until_sleepers(&away, 0, GONE).await;
        world.start_supervisor().await;
        world.rebase().await;
        world.settle().await;
    }
}

async fn ex_17_a_killed_gateway_is_no_exit(topology: Topology) {
    let mut world = World::start(topology, options()).await;
    let time = long_sleep();
    let running = Running::start(cli(&world, &[], &["sleep", &time]));
    until_sleepers(&time, 1, MOMENT).await;
    world.kill_gateway().await;
    let finished = running.finish(MOMENT).await;
    assert_eq!(finished.code(), Some(125), "{finished:?}");
    assert!(
        finished.stderr.contains("TRANSPORT_LOST"),
        "{}",
        finished.stderr
    );
    until_sleepers(&time, 0, GONE).await;
    let sessions = world.sessions();
    world.restart_gateway().await;
    world.until_sessions(sessions + 1).await;
    world.rebase().await;
    world.settle().await;
}

async fn ex_17_a_cut_line_is_no_exit(topology: Topology) {
    let mut world = World::start(topology, options().client_proxy()).await;
    let time = long_sleep();
    for ending in [Ending::Reset, Ending::Fin] {
        let running = Running::start(cli(&world, &[], &["sleep", &time]));
        until_sleepers(&time, 1, MOMENT).await;
        world.client_proxy().end_all(ending);
        let finished = running.finish(MOMENT).await;
        assert_eq!(finished.code(), Some(125), "{finished:?}");
        until_sleepers(&time, 0, GONE).await;
    }
    world.rebase().await;
    world.settle().await;
}

async fn ex_19_a_session_that_resets_takes_its_commands_with_it(topology: Topology) {
    let mut world = World::start(topology, options().supervisor_proxy()).await;
    let client = world.client();
    let time = long_sleep();
    let mut exec = start(&client, script(&format!("sleep {time}; echo done"))).await;
    until_sleepers(&time, 1, MOMENT).await;
    let sessions = world.sessions();
    world.supervisor_proxy().end_all(Ending::Reset);
    // Not when the heartbeats or the command are over: both take minutes.
    let outcome = within(GONE, "the end", exec.events().wait()).await;
    let Outcome::Lost(end) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(end.reason, Reason::SupervisorLost, "{end}");
    until_sleepers(&time, 0, GONE).await;
    world.until_sessions(sessions + 1).await;
    let next = within(GONE, "the next command", run(&client, argv(&["true"]))).await;
    assert!(next.outcome.is_success(), "{}", next.outcome);
    drop((exec, client));
    world.rebase().await;
    world.settle().await;
}

/// Nobody is told anything: it is the heartbeats that are missed.
#[tokio::test]
async fn ex_17_a_silent_line_is_noticed() {
    let options = options()
        .supervisor_proxy()
        .gateway("heartbeat_interval", "300ms");
    let mut world = World::start(Topology::PLAINTEXT, options).await;
    let time = long_sleep();
    let running = Running::start(cli(&world, &[], &["sleep", &time]));
    until_sleepers(&time, 1, MOMENT).await;
    world.supervisor_proxy().hold(Direction::Both);
    let finished = running.finish(GENEROUS).await;
    assert_eq!(finished.code(), Some(125), "{finished:?}");
    assert!(
        finished.stderr.contains("SUPERVISOR_LOST")
            || finished.stderr.contains("HEARTBEAT_TIMEOUT"),
        "{}",
        finished.stderr
    );
    until_sleepers(&time, 0, MOMENT).await;
    let sessions = world.sessions();
    world.supervisor_proxy().pass(Direction::Both);
    world.until_sessions(sessions + 1).await;
    world.rebase().await;
    world.settle().await;
}
