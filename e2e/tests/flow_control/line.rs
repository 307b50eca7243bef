//! Long lines: what is small does not wait behind what is large, and windows are wide enough.

use std::time::Duration;

use tidegate_e2e::measure::{fetch_with, ping_pong_on};
use tidegate_e2e::world::open;
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::fault_proxy::{Direction, FaultProxy};
use tidegate_testkit::target::Target;

use crate::MIB;
use crate::fairness::fetch;

every_topology! {
    fc_02_small_messages_do_not_wait_behind_bulk,
    fc_13_a_long_line_is_filled,
}

async fn fc_02_small_messages_do_not_wait_behind_bulk(topology: Topology) {
    const ONE_WAY: Duration = Duration::from_millis(75);
    let options = Options::new()
        .client_proxy()
        .supervisor_proxy()
        .gateway("heartbeat_interval", "1s");
    let world = World::start(topology, options).await;
    let content = Content::new(sized(16, 100) * MIB, 2);
    let (source, echo) = (Target::source(content).unwrap(), Target::echo().unwrap());
    // All on one connection to the gateway, and so on one of the supervisor's.
    let client = world.client();
    let mut pinged = open(&client, echo.address()).await.unwrap();
    for line in [world.client_proxy(), world.supervisor_proxy()] {
        line.delay(Direction::Both, ONE_WAY);
        let (_, samples) = tokio::join!(
            fetch_with(&client, source.address(), content),
            ping_pong_on(&mut pinged, &[b'.'; 64], 12, Duration::ZERO),
        );
        assert!(samples.percentile(50) >= 2 * ONE_WAY, "{samples:?}");
        assert!(
            samples.percentile(99) < Duration::from_secs(3),
            "{samples:?}"
        );
        line.delay(Direction::Both, Duration::ZERO);
    }
    assert_eq!(world.sessions(), 1);
    pinged.reset();
    drop(client);
    world.settle().await;
}

async fn fc_13_a_long_line_is_filled(topology: Topology) {
    const ONE_WAY: Duration = Duration::from_millis(50);
    let world = World::start(topology, Options::new().client_proxy().supervisor_proxy()).await;
    let content = Content::new(sized(16, 64) * MIB, 13);
    let source = Target::source(content).unwrap();
    let download = world.forward(&source).await;
    let lines: [&FaultProxy; 2] = [world.client_proxy(), world.supervisor_proxy()];
    for line in lines {
        line.delay(Direction::Both, ONE_WAY);
        let took = fetch(&download, content).await;
        let rate = content.len() as f64 / took.as_secs_f64();
        // 5 MB/s is what is promised; half of it on a machine that does other things too.
        assert!(rate > 2.5e6, "{rate} bytes/s");
        line.delay(Direction::Both, Duration::ZERO);
    }
    world.settle().await;
}
