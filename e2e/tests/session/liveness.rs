//! Who is alive, who is not, and who only seems so.

use std::time::Duration;

use futures_util::future::join_all;
use tidegate_client::Phase;
use tidegate_e2e::measure::ping_pong;
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::fault_proxy::Direction;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;

use crate::{ENDED, MOMENT, NONE_YET, echoes, until_phase};

every_topology! {
    ss_03_a_session_whose_words_are_lost_is_dead,
    ss_03_a_session_that_hears_nothing_is_dead,
    ss_04_the_gateway_names_the_interval_for_both,
    ss_05_heartbeats_get_through_a_busy_processor,
    ss_14_a_killed_supervisor_is_not_ready,
    ss_14_a_stopped_supervisor_is_not_ready,
}

async fn ss_03_a_session_whose_words_are_lost_is_dead(topology: Topology) {
    loses_words(topology, Direction::Upstream, &["HEARTBEAT_TIMEOUT"]).await;
}

/// Here the supervisor notices first; to the gateway its end looks like a loss.
async fn ss_03_a_session_that_hears_nothing_is_dead(topology: Topology) {
    loses_words(
        topology,
        Direction::Downstream,
        &["HEARTBEAT_TIMEOUT", "SUPERVISOR_LOST"],
    )
    .await;
}

async fn loses_words(topology: Topology, way: Direction, reasons: &[&str]) {
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
        assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
        let closed = forward.closed_of(client).await;
        assert!(reasons.contains(&&*closed.reason), "{closed:?}");
        let seen = target.next().await.until_read_end().await;
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
async fn ss_04_the_gateway_names_the_interval_for_both(topology: Topology) {
    let options = Options::new()
        .gateway("heartbeat_interval", "3s")
        .supervisor("time_scale", 20.0);
    let world = World::start(topology, options).await;
    tokio::time::sleep(sized(Duration::from_secs(8), Duration::from_secs(60))).await;
    assert_eq!(world.sessions(), 1);
    world.settle().await;
}

async fn ss_05_heartbeats_get_through_a_busy_processor(topology: Topology) {
    let options = Options::new().one_cpu().gateway("heartbeat_interval", "1s");
    let world = World::start(topology, options).await;
    let endless = Target::endless().unwrap();
    let bulk = world.forward(&endless).await;
    let clients: [_; 8] = std::array::from_fn(|_| bulk.connect());
    let clients = join_all(clients).await;
    let busy = sized(Duration::from_secs(8), Duration::from_secs(60));
    let reading = join_all(clients.iter().map(|client| client.read_to_end()));
    let ended = tokio::time::timeout(busy, reading).await;
    assert!(ended.is_err(), "the endless streams have ended: {ended:?}");
    assert_eq!(world.sessions(), 1);
    drop(clients);
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
