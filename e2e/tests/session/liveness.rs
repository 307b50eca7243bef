//! Who is alive, who is not, and who only seems so.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_client::Phase;
use tidegate_e2e::measure::{Samples, ping_pong};
use tidegate_e2e::options::NO_HEARTBEATS;
use tidegate_e2e::raw::{self, Supervisor};
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::fault_proxy::Direction;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::within;

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
    let options = Options::new()
        .one_cpu()
        .gateway("heartbeat_interval", "1s")
        .expect_warning(NO_HEARTBEATS);
    let world = World::start(topology, options).await;
    let endless = Target::endless().unwrap();
    let bulk = world.forward(&endless).await;
    let clients: [_; 8] = std::array::from_fn(|_| bulk.connect());
    let clients = join_all(clients).await;
    let mut watch = Supervisor::connect_for(&world, "watch", &raw::SESSION).await;
    let busy = sized(Duration::from_secs(8), Duration::from_secs(60));
    let reading = join_all(clients.iter().map(|client| client.read_to_end()));
    let reading = tokio::time::timeout(busy, reading);
    let (ended, late) = tokio::join!(reading, lateness(&mut watch, busy));
    assert!(ended.is_err(), "the endless streams have ended: {ended:?}");
    // Three of four: what else the machine does is in the way too, where there is one processor.
    assert!(late.percentile(75) < Duration::from_secs(1), "{late:?}");
    assert_eq!(world.sessions(), 1);
    drop((clients, watch));
    world.settle().await;
}

/// Listens to a gateway's heartbeats for some time, and says by how much each came later than one
/// interval, a second, after the one before.
async fn lateness(watch: &mut Supervisor, listening: Duration) -> Samples {
    let begun = Instant::now();
    let mut samples = Samples::default();
    watch.heartbeat().await;
    while begun.elapsed() < listening {
        let last = Instant::now();
        watch.heartbeat().await;
        samples.push(last.elapsed().saturating_sub(Duration::from_secs(1)));
    }
    samples
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
