//! Sessions that end and come back, late ends of old ones, and first ones.

use std::time::{Duration, Instant};

use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::fault_proxy::{Ending, FaultProxy};
use tidegate_testkit::legacy::{Supervisor, SupervisorOptions};
use tidegate_testkit::probe::resident_memory;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait;

use crate::{ENDED, MOMENT, NONE_YET, echoes, opens, sandbox};

every_topology! {
    ss_01_the_late_end_of_a_stranded_session_touches_nobody,
    ss_07_a_supervisor_outlives_its_gateways,
    dep_03_a_gateway_without_supervisors_is_ready,
}

async fn ss_01_the_late_end_of_a_stranded_session_touches_nobody(topology: Topology) {
    let options = Options::new()
        .supervisor_proxy()
        // It never notices by itself that a session is dead.
        .gateway("heartbeat_interval", "1h")
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let client = world.client();
    for round in 1..=sized(3, 20) {
        let before = one_session(&client).await;
        world.supervisor_proxy().strand();
        world.kill_supervisor().await;
        world.start_supervisor().await;
        let after = one_session(&client).await;
        assert_ne!(before, after);
        echoes(&forward).await;
        world.supervisor_proxy().end_stranded(Ending::Reset);
        for _ in 0..sized(20, 100) {
            echoes(&forward).await;
        }
        assert_eq!(one_session(&client).await, after, "round {round}");
    }
    drop(client);
    world.rebase().await;
    world.settle().await;
}

/// The same with a supervisor that knows no heartbeats, over and over. Each has a line of its own,
/// which is dead when the next comes, and ends when that one has taken over.
#[tokio::test]
async fn ss_01_the_late_end_of_a_legacy_session_touches_nobody() {
    let world = World::start(Topology::PLAINTEXT, Options::new().no_supervisor()).await;
    let target = Target::echo().unwrap();
    let client = world.client();
    let begin = async || {
        let line = FaultProxy::start(world.gateway_address()).unwrap();
        let options = SupervisorOptions::new(line.address(), tidegate_e2e::SANDBOX);
        let supervisor = Supervisor::start(options).unwrap();
        supervisor.accepted().await;
        (line, supervisor)
    };
    let (mut line, mut supervisor) = begin().await;
    for _ in 0..20 {
        let before = one_session(&client).await;
        line.strand();
        let (next_line, next) = begin().await;
        let after = one_session(&client).await;
        assert_ne!(before, after);
        opens(&client, target.address()).await;
        line.end_stranded(Ending::Reset);
        supervisor.session_ended().await;
        for _ in 0..5 {
            opens(&client, target.address()).await;
        }
        assert_eq!(one_session(&client).await, after);
        (line, supervisor) = (next_line, next);
    }
    drop((line, supervisor, client));
    world.settle().await;
}

/// Waits until there is exactly one session, and returns its name.
async fn one_session(client: &tidegate_client::Client) -> String {
    let mut sessions = Vec::new();
    let alone = wait::until_async(MOMENT, async || {
        sessions = client.sessions(Some(&sandbox())).await.unwrap();
        sessions.len() == 1
    });
    assert!(alone.await.is_ok(), "{sessions:?}");
    sessions[0].session.to_string()
}

async fn ss_07_a_supervisor_outlives_its_gateways(topology: Topology) {
    let options = Options::new()
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let process = world.supervisor().process().id();
    let mut memory = 0;
    let cycles = sized(4, 20);
    for cycle in 1..=cycles {
        world.kill_gateway().await;
        tokio::time::sleep(sized(Duration::from_millis(500), Duration::from_secs(3))).await;
        let begun = Instant::now();
        world.restart_gateway().await;
        world.until_sessions(cycle + 1).await;
        // 5 s are promised; a machine with much to do gets more.
        assert!(
            begun.elapsed() < 3 * Duration::from_secs(5),
            "{:?}",
            begun.elapsed()
        );
        echoes(&forward).await;
        if cycle % 5 == 0 {
            // Sessions shorter than 10 s leave one outage to go on, and after a minute of it the
            // supervisor takes its time.
            tokio::time::sleep(sized(Duration::ZERO, Duration::from_secs(11))).await;
        }
        let now = resident_memory(process).unwrap();
        if cycle == 2 {
            memory = now;
        }
        assert!(
            cycle <= 2 || now < memory + (8 << 20),
            "{memory} bytes grew to {now}"
        );
    }
    world.rebase().await;
    world.settle().await;
}

async fn dep_03_a_gateway_without_supervisors_is_ready(topology: Topology) {
    let mut world = World::start(topology, Options::new().no_supervisor()).await;
    wait::until_async(MOMENT, async || world.gateway().is_ready())
        .await
        .unwrap();
    assert_eq!(world.gateway().metrics().sum("tidegate_sessions"), 0.0);
    world.start_supervisor().await;
    wait::until_async(MOMENT, async || world.supervisor().is_ready())
        .await
        .unwrap();
    world.rebase().await;
    world.settle().await;
}
