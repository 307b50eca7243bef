//! Clients that come and go, in numbers.

use std::time::Duration;

use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::{BlackHole, Target};
use tidegate_testkit::wait;

use crate::MOMENT;

every_topology! {
    pf_19_connections_closed_by_the_client_leave_nothing,
    pf_25_clients_that_vanish_while_the_target_is_dialled_leave_nothing,
    pf_25_clients_that_vanish_as_the_path_opens_leave_nothing,
}

async fn pf_19_connections_closed_by_the_client_leave_nothing(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let count = sized(1000, 5000);
    for _ in 0..count {
        let client = forward.connect().await;
        client.write(b"request").await.unwrap();
        assert_eq!(client.read(7).await, b"request");
    }
    wait::until_async(MOMENT, async || target.open() == 0)
        .await
        .unwrap();
    assert_eq!(target.accepted(), count);
    world.settle().await;
}

async fn pf_25_clients_that_vanish_while_the_target_is_dialled_leave_nothing(topology: Topology) {
    // It is not time that ends the dials.
    let options = Options::new()
        .gateway("relay_open_timeout", "10m")
        .supervisor("dial_timeout", "10m");
    let world = World::start(topology, options).await;
    let hole = BlackHole::open().unwrap();
    let forward = world.forward_to(&hole.address().to_string()).await;
    let mut clients = Vec::new();
    let count = sized(300, 1000);
    for _ in 0..count {
        clients.push(forward.connect().await);
    }
    let waiting = "tidegate_pending_relays";
    world
        .gateway()
        .until_metric(waiting, f64::from(count), MOMENT)
        .await;
    clients.into_iter().for_each(Socket::reset);
    world.gateway().until_metric(waiting, 0.0, MOMENT).await;
    let dialling = "tidegate_streams";
    world.supervisor().until_metric(dialling, 0.0, MOMENT).await;
    world.settle().await;
}

async fn pf_25_clients_that_vanish_as_the_path_opens_leave_nothing(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::never_reader().unwrap();
    let forward = world.forward(&target).await;
    for index in 0..sized(400, 1000) {
        let client = forward.connect().await;
        // Some at once, some a little later: every step of the opening is met.
        tokio::time::sleep(Duration::from_micros(index % 20 * 100)).await;
        client.reset();
    }
    world
        .gateway()
        .until_metric("tidegate_streams", 0.0, MOMENT)
        .await;
    wait::until_async(MOMENT, async || target.open() == 0)
        .await
        .unwrap();
    world.settle().await;
}
