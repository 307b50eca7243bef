//! What can be seen of a gateway's and a supervisor's work from outside.

use tidegate_e2e::{Daemon, Options, Topology, World, every_topology};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{BlackHole, Target};

use crate::MOMENT;

every_topology! {
    dep_07_gauges_return_and_every_stream_is_counted_out_with_its_reason,
}

async fn dep_07_gauges_return_and_every_stream_is_counted_out_with_its_reason(topology: Topology) {
    let options = Options::new().supervisor("dial_timeout", "500ms");
    let world = World::start(topology, options).await;
    let before = [world.gateway().metrics(), world.supervisor().metrics()];
    let echo = Target::echo().unwrap();
    let resetter = Target::resetter(1).unwrap();
    let nobody = Target::echo().unwrap().address();
    let hole = BlackHole::open().unwrap();

    let finished = world.forward(&echo).await;
    let client = finished.connect().await;
    client.write(b"x").await.unwrap();
    client.shutdown_write().unwrap();
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Eof));

    let reset = world.forward(&resetter).await;
    let client = reset.connect().await;
    assert_eq!(client.read(1).await.len(), 1);
    resetter.next().await.cue();
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));

    for target in [nobody, hole.address()] {
        let client = world.forward_to(&target.to_string()).await.connect().await;
        assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    }
    let client = finished.connect().await;
    client.write(b"x").await.unwrap();
    assert_eq!(client.read(1).await, b"x");
    client.reset();

    let daemons: [&Daemon; 2] = [world.gateway(), world.supervisor()];
    for (daemon, before) in daemons.into_iter().zip(&before) {
        daemon.until_metric("tidegate_streams", 0.0, MOMENT).await;
        let after = daemon.metrics();
        let grew = |name: &str| after.sum(name) - before.sum(name);
        assert_eq!(grew("tidegate_streams_opened_total"), 5.0);
        assert_eq!(grew("tidegate_streams_ended_total"), 5.0);
        for reason in [
            "FINISHED",
            "TARGET_RESET",
            "TARGET_REFUSED",
            "DIAL_TIMEOUT",
            "CLIENT_",
        ] {
            let name = format!("reason=\"{reason}");
            let seen = after.others.keys().any(|sample| sample.contains(&name));
            assert!(seen, "{reason} is not in {:#?}", after.others);
        }
    }
    world.settle().await;
}
