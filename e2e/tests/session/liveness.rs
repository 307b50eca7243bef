//! Who is alive, who is not, and who only seems so.

use std::time::Duration;

use tidegate_client::Phase;
use tidegate_e2e::measure::ping_pong;
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::fault_proxy::Direction;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::within;

use crate::{ENDED, MOMENT, NONE_YET, echoes, sandbox, until_phase};

every_topology! {
    ss_03_a_session_whose_words_are_lost_is_dead,
    ss_03_a_session_that_hears_nothing_is_dead,
    ss_04_the_gateway_names_an_interval_that_is_longer,
    ss_04_the_gateway_names_an_interval_that_is_shorter,
    ss_14_a_killed_supervisor_is_not_ready,
    ss_14_a_stopped_supervisor_is_not_ready,
}

async fn ss_03_a_session_whose_words_are_lost_is_dead(topology: Topology) {
    loses_words(topology, Direction::Upstream).await;
}

/// Here the supervisor notices, and says so while it is still heard.
async fn ss_03_a_session_that_hears_nothing_is_dead(topology: Topology) {
    loses_words(topology, Direction::Downstream).await;
}

async fn loses_words(topology: Topology, way: Direction) {
    let options = Options::new()
        .supervisor_proxy()
        .gateway("heartbeat_interval", "500ms")
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let clients = [forward.connect().await, forward.connect().await];
    for client in &clients {
        ping_pong(client, b"alive", 1, Duration::ZERO).await;
    }
    world.supervisor_proxy().discard(way);
    for client in &clients {
        // Long before a PING would be missed.
        let seen = within(MOMENT, "three intervals to pass", client.read_to_end()).await;
        assert_eq!(seen.read_end, Some(Ended::Reset));
        let closed = forward.closed_of(client).await;
        assert_eq!(closed.reason, "HEARTBEAT_TIMEOUT");
        let target = target.next().await;
        let seen = within(MOMENT, "the target's reset", target.until_read_end()).await;
        assert_eq!(seen.read_end, Some(Ended::Reset));
    }
    world.supervisor_proxy().pass(way);
    world.until_sessions(2).await;
    echoes(&forward).await;
    drop(clients);
    world.rebase().await;
    world.settle().await;
}

/// Left to itself this supervisor would miss three heartbeats before the gateway sends its first.
async fn ss_04_the_gateway_names_an_interval_that_is_longer(topology: Topology) {
    let options = Options::new()
        .gateway("heartbeat_interval", "3s")
        .supervisor("time_scale", 20.0);
    nobody_is_taken_for_dead(topology, options).await;
}

/// Left to itself this supervisor would send its first heartbeat after the gateway has missed many.
async fn ss_04_the_gateway_names_an_interval_that_is_shorter(topology: Topology) {
    let options = Options::new().gateway("heartbeat_interval", "500ms");
    nobody_is_taken_for_dead(topology, options).await;
}

/// A session and a stream live for many times as long as either end would wait by itself.
async fn nobody_is_taken_for_dead(topology: Topology, options: Options) {
    let world = World::start(topology, options).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let local = forward.connect().await;
    ping_pong(&local, b"before", 1, Duration::ZERO).await;
    let client = world.client();
    let sessions = async || {
        let sessions = client.sessions(Some(&sandbox())).await.unwrap();
        let ids = sessions.iter().map(|session| session.session.to_string());
        ids.collect::<Vec<_>>()
    };
    let before = sessions().await;
    assert_eq!(before.len(), 1);
    tokio::time::sleep(sized(Duration::from_secs(8), Duration::from_secs(60))).await;
    assert_eq!((sessions().await, world.sessions()), (before, 1));
    ping_pong(&local, b"after", 1, Duration::ZERO).await;
    local.shutdown_write().unwrap();
    assert_eq!(local.read_to_end_soon().await.read_end, Some(Ended::Eof));
    forward.closed_of(&local).await.assert_finished(11, 11);
    drop((local, client));
    world.settle().await;
}

async fn ss_14_a_killed_supervisor_is_not_ready(topology: Topology) {
    let mut world = World::start(topology, Options::new()).await;
    let client = world.client();
    until_phase(&client, |phase| phase == Phase::Ready, MOMENT).await;
    world.kill_supervisor().await;
    until_phase(&client, |phase| phase == Phase::Unknown, MOMENT).await;
    world.start_supervisor().await;
    until_phase(&client, |phase| phase == Phase::Ready, MOMENT).await;
    drop(client);
    world.rebase().await;
    world.settle().await;
}

async fn ss_14_a_stopped_supervisor_is_not_ready(topology: Topology) {
    let options = Options::new()
        .gateway("heartbeat_interval", "500ms")
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let client = world.client();
    world.supervisor().process().stop();
    until_phase(&client, |phase| phase == Phase::Unknown, MOMENT).await;
    world.supervisor().process().resume();
    until_phase(&client, |phase| phase == Phase::Ready, MOMENT).await;
    drop(client);
    world.rebase().await;
    world.settle().await;
}
