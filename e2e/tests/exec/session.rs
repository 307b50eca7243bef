//! Commands and the sessions that carry them.

use std::time::{Duration, Instant};

use tidegate_client::exec::Outcome;
use tidegate_client::{Client, Origin, Reason, SandboxName};
use tidegate_e2e::command::Running;
use tidegate_e2e::raw::{self, Supervisor};
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::fault_proxy::Ending;
use tidegate_testkit::wait::{self, within};

use crate::{ENDED, GONE, MOMENT, NONE_YET, argv, cli, ran, refused, run, sandbox};

every_topology! {
    ss_01_commands_run_on_the_newest_session,
    ss_13_a_command_waits_for_a_supervisor_that_is_starting,
    ex_20_a_command_does_not_wait_for_ever,
    ex_20_a_command_for_nobody_is_refused_at_once,
    ss_16_a_command_is_never_run_twice,
    ss_18_a_supervisor_that_runs_no_commands_is_not_asked_to,
    commands_can_be_switched_off,
}

async fn session(client: &Client) -> String {
    let mut live = Vec::new();
    let one = wait::until_async(MOMENT, async || {
        live = client.sessions(Some(&sandbox())).await.unwrap_or_default();
        live.len() == 1
    });
    assert!(one.await.is_ok(), "{live:?}");
    format!("{:?}", live[0].session)
}

async fn ss_01_commands_run_on_the_newest_session(topology: Topology) {
    let options = Options::new()
        .commands()
        .supervisor_proxy()
        // It never notices by itself that a session is dead.
        .gateway("heartbeat_interval", "1h")
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let client = world.client();
    for round in 1..=sized(3, 20) {
        let before = session(&client).await;
        world.supervisor_proxy().strand();
        world.kill_supervisor().await;
        world.start_supervisor().await;
        let after = session(&client).await;
        assert_ne!(before, after);
        world.supervisor_proxy().end_stranded(Ending::Reset);
        for _ in 0..sized(20, 100) {
            let collected = run(&client, argv(&["echo", "x"])).await;
            assert_eq!(collected.stdout.data, b"x\n", "{}", collected.outcome);
        }
        assert_eq!(session(&client).await, after, "round {round}");
    }
    drop(client);
    world.rebase().await;
    world.settle().await;
}

async fn ss_13_a_command_waits_for_a_supervisor_that_is_starting(topology: Topology) {
    const LATE: Duration = Duration::from_secs(1);
    let mut world = World::start(topology, Options::new().commands().no_supervisor()).await;
    let running = Running::start(cli(&world, &[], &["echo", "late"]));
    tokio::time::sleep(LATE).await;
    world.start_supervisor().await;
    let finished = running.finish(MOMENT).await;
    assert_eq!((finished.code(), &*finished.text()), (Some(0), "late\n"));
    assert!(finished.elapsed >= LATE);
    world.rebase().await;
    world.settle().await;
}

async fn ex_20_a_command_does_not_wait_for_ever(topology: Topology) {
    const WAIT: Duration = Duration::from_secs(1);
    let options = Options::new()
        .commands()
        .gateway("session_wait", "1s")
        .gateway("restart_grace", "0s");
    let mut world = World::start(topology, options).await;
    world.kill_supervisor().await;
    let client = world.client();
    let begun = Instant::now();
    let end = refused(&client, argv(&["true"])).await;
    let waited = begun.elapsed();
    assert_eq!(
        (end.reason, end.origin),
        (Reason::NoSession, Origin::Gateway)
    );
    assert!(waited >= WAIT, "{waited:?}");
    let finished = ran(&world, &[], &["true"]).await;
    assert_eq!(finished.code(), Some(125), "{finished:?}");
    drop(client);
    world.start_supervisor().await;
    world.rebase().await;
    world.settle().await;
}

/// A sandbox that nobody knows is not waited for, however long one may wait.
async fn ex_20_a_command_for_nobody_is_refused_at_once(topology: Topology) {
    let options = Options::new()
        .commands()
        .gateway("session_wait", "10m")
        .gateway("restart_grace", "0s");
    let world = World::start(topology, options).await;
    let client = world.client();
    let nobody = SandboxName::parse("nobody").unwrap();
    let mut exec = client.exec(&nobody, argv(&["true"])).await.unwrap();
    let outcome = within(MOMENT, "a refusal", exec.wait()).await;
    let Outcome::NotStarted(end) = &outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(end.reason, Reason::SandboxNotFound);
    drop((exec, client));
    world.settle().await;
}

async fn ss_16_a_command_is_never_run_twice(topology: Topology) {
    let options = Options::new()
        .commands()
        .supervisor_proxy()
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let directory = tempfile::tempdir().unwrap();
    let count = directory.path().join("n");
    let lines = || std::fs::read(&count).unwrap_or_default().len() / 2;
    for round in 1..=sized(5, 50) {
        let effect = format!("echo x >> {}; sleep 5", count.display());
        let running = Running::start(cli(&world, &[], &["sh", "-c", &effect]));
        wait::until_async(MOMENT, async || lines() == round)
            .await
            .unwrap();
        let sessions = world.sessions();
        world.supervisor_proxy().end_all(Ending::Reset);
        let finished = running.finish(MOMENT).await;
        assert_eq!(finished.code(), Some(125), "{finished:?}");
        world.until_sessions(sessions + 1).await;
        assert_eq!(lines(), round);
    }
    world
        .supervisor()
        .until_metric("tidegate_execs", 0.0, GONE)
        .await;
    world.rebase().await;
    world.settle().await;
}

async fn ss_18_a_supervisor_that_runs_no_commands_is_not_asked_to(topology: Topology) {
    let world = World::start(topology, Options::new().commands().no_supervisor()).await;
    let supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let client = world.client();
    let end = refused(&client, argv(&["true"])).await;
    assert_eq!(
        (end.reason, end.origin),
        (Reason::CapabilityRequired, Origin::Gateway)
    );
    assert_eq!(ran(&world, &[], &["true"]).await.code(), Some(125));
    drop((client, supervisor));
    world.settle().await;
}

async fn commands_can_be_switched_off(topology: Topology) {
    let world = World::start(topology, Options::new().supervisor("exec_scope", "off")).await;
    let finished = ran(&world, &[], &["true"]).await;
    assert_eq!(finished.code(), Some(125), "{finished:?}");
    assert!(
        finished.stderr.contains("CAPABILITY_REQUIRED"),
        "{}",
        finished.stderr
    );
    world.settle().await;
}
