//! Long lines: what is small does not wait behind what is large, and windows are wide enough.

use std::time::{Duration, Instant};

use tidegate_e2e::measure::{fetch_with, in_one_try, ping_pong_on};
use tidegate_e2e::world::open;
use tidegate_e2e::{Forward, Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::fault_proxy::{Direction, FaultProxy};
use tidegate_testkit::record::Ended;
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
    /// Bytes in a second: what a window of half a MiB lets through in ten round trips.
    const PROMISED: f64 = 5e6;
    let world = World::start(topology, Options::new().client_proxy().supervisor_proxy()).await;
    let content = Content::new(sized(16, 64) * MIB, 13);
    let (source, sink) = (Target::source(content).unwrap(), Target::sink().unwrap());
    let (download, upload) = (world.forward(&source).await, world.forward(&sink).await);
    let rate = |took: Duration| content.len() as f64 / took.as_secs_f64();
    let lines: [&FaultProxy; 2] = [world.client_proxy(), world.supervisor_proxy()];
    for line in lines {
        line.delay(Direction::Both, ONE_WAY);
        let down = async || rate(fetch(&download, content).await);
        in_one_try(down, |rate| *rate > PROMISED).await;
        let up = async || rate(store(&upload, &sink, content).await);
        in_one_try(up, |rate| *rate > PROMISED).await;
        line.delay(Direction::Both, Duration::ZERO);
    }
    world.settle().await;
}

/// Uploads everything, checks it, and says how long that took.
async fn store(forward: &Forward, sink: &Target, content: Content) -> Duration {
    let begun = Instant::now();
    let client = forward.connect().await;
    client.write_content(content).await.unwrap();
    client.shutdown_write().unwrap();
    let seen = sink.next().await.until_read_end().await;
    let took = begun.elapsed();
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Eof));
    let closed = forward.closed_of(&client).await;
    closed.assert_finished(content.len(), 0);
    took
}
