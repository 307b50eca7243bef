//! A supervisor, or a gateway, that is told to stop.

use std::time::{Duration, Instant};

use tidegate_client::Client;
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait;

use crate::{ENDED, MOMENT, NONE_YET, echoes, sandbox};

every_topology! {
    ss_15_a_clean_stop_is_told_and_streams_may_finish,
    ss_15_what_does_not_finish_is_ended,
    ss_23_one_reset_stream_takes_no_session_with_it,
    a_gateway_that_stops_says_so_and_the_supervisor_comes_back,
    ha_10_a_gateway_that_leaves_cuts_no_stream_that_ends_in_time,
    a_gateway_that_is_told_twice_waits_for_nobody,
    a_supervisor_that_is_told_twice_waits_for_nobody,
}

/// What a daemon logs for each signal to stop.
const TOLD: &str = "told to stop";

const GRACE: Duration = Duration::from_secs(2);

async fn ss_15_a_clean_stop_is_told_and_streams_may_finish(topology: Topology) {
    let options = Options::new().supervisor("stop_grace", "30s");
    let mut world = World::start(topology, options).await;
    let target = Target::answer_after_end().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write(b"half").await.unwrap();
    target.next().await.until_read(4).await;
    let sdk = world.client();
    let supervisor = world.take_supervisor();
    supervisor.process().terminate();
    until_draining(&sdk).await;
    assert!(supervisor.process().is_running());
    client.write(b"done").await.unwrap();
    client.shutdown_write().unwrap();
    let seen = client.read_to_end_soon().await;
    assert_eq!(
        (&seen.head[..], seen.read_end),
        (&b"OK 8\n"[..], Some(Ended::Eof))
    );
    forward.closed_of(&client).await.assert_finished(8, 5);
    assert!(supervisor.process().exit(MOMENT).await.success());
    until_no_session(&sdk).await;
    drop((client, sdk));
    world.start_supervisor().await;
    world.rebase().await;
    world.settle().await;
}

async fn ss_15_what_does_not_finish_is_ended(topology: Topology) {
    let options = Options::new().supervisor("stop_grace", "2s");
    let mut world = World::start(topology, options).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write(b"x").await.unwrap();
    assert_eq!(client.read(1).await, b"x");
    let supervisor = world.take_supervisor();
    let begun = Instant::now();
    supervisor.process().terminate();
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    let waited = begun.elapsed();
    assert!(waited >= GRACE && waited < MOMENT, "{waited:?}");
    let closed = forward.closed_of(&client).await;
    assert_eq!(
        (&*closed.reason, &*closed.origin),
        ("SUPERVISOR_STOPPED", "supervisor")
    );
    let seen = target.next().await.until_read_end().await;
    assert_eq!(seen.read_end, Some(Ended::Reset));
    assert!(supervisor.process().exit(MOMENT).await.success());
    drop(client);
    world.start_supervisor().await;
    world.rebase().await;
    world.settle().await;
}

async fn until_draining(client: &Client) {
    let mut seen = Vec::new();
    let draining = wait::until_async(MOMENT, async || {
        seen = client.sessions(Some(&sandbox())).await.unwrap();
        matches!(&seen[..], [one] if one.state == "draining")
    });
    assert!(draining.await.is_ok(), "{seen:?}");
}

async fn until_no_session(client: &Client) {
    let gone = wait::until_async(MOMENT, async || {
        client.sessions(Some(&sandbox())).await.unwrap().is_empty()
    });
    gone.await.unwrap();
}

async fn ss_23_one_reset_stream_takes_no_session_with_it(topology: Topology) {
    const STREAMS: usize = 20;
    const RESETS: usize = 40;
    let world = World::start(topology, Options::new()).await;
    let (echo, resetter) = (Target::echo().unwrap(), Target::resetter(1000).unwrap());
    let (echoing, resetting) = (world.forward(&echo).await, world.forward(&resetter).await);
    let mut others = Vec::new();
    for _ in 0..STREAMS {
        others.push(echoing.connect().await);
    }
    for round in 0..RESETS {
        let client = resetting.connect().await;
        assert_eq!(client.read(1000).await.len(), 1000);
        resetter.next().await.cue();
        assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
        for other in &others {
            let word = [u8::try_from(round).unwrap(); 512];
            other.write(&word).await.unwrap();
            assert_eq!(other.read(512).await, word);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    for other in &others {
        other.shutdown_write().unwrap();
        assert_eq!(other.read_to_end_soon().await.read_end, Some(Ended::Eof));
        let total = (RESETS * 512) as u64;
        echoing.closed_of(other).await.assert_finished(total, total);
    }
    assert_eq!(world.sessions(), 1);
    drop(others);
    world.settle().await;
}

async fn a_gateway_that_stops_says_so_and_the_supervisor_comes_back(topology: Topology) {
    let options = Options::new()
        .gateway("drain_deadline", "0s")
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let (endless, echo) = (
        Target::start([Step::SendForever]).unwrap(),
        Target::echo().unwrap(),
    );
    let (bulk, echoing) = (world.forward(&endless).await, world.forward(&echo).await);
    let client = bulk.connect().await;
    client.read(1 << 20).await;
    let process = world.gateway().process();
    process.terminate();
    assert!(process.exit(MOMENT).await.success());
    endless.next().await.until_write_fails(MOMENT).await;
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    assert_eq!(bulk.closed_of(&client).await.reason, "GATEWAY_DRAINING");
    world.restart_gateway().await;
    world.until_sessions(2).await;
    echoes(&echoing).await;
    drop(client);
    world.rebase().await;
    world.settle().await;
}

/// Its supervisor has no other gateway to go to, and keeps the session until the last stream has ended.
async fn ha_10_a_gateway_that_leaves_cuts_no_stream_that_ends_in_time(topology: Topology) {
    let options = Options::new()
        .gateway("drain_announce", "200ms")
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    let target = Target::answer_after_end().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write(b"half").await.unwrap();
    target.next().await.until_read(4).await;
    let gateway = world.gateway();
    gateway.process().terminate();
    gateway
        .until_logged("not listening any more", 1, MOMENT)
        .await;
    assert!(!gateway.is_ready() && gateway.process().is_running());
    client.write(b"done").await.unwrap();
    client.shutdown_write().unwrap();
    let seen = client.read_to_end_soon().await;
    assert_eq!(
        (&seen.head[..], seen.read_end),
        (&b"OK 8\n"[..], Some(Ended::Eof))
    );
    forward.closed_of(&client).await.assert_finished(8, 5);
    assert!(gateway.process().exit(MOMENT).await.success());
    drop(client);
    world.restart_gateway().await;
    world.until_sessions(2).await;
    world.rebase().await;
    world.settle().await;
}

/// The supervisor stands still, so that the gateway cannot part from it as it should.
async fn a_gateway_that_is_told_twice_waits_for_nobody(topology: Topology) {
    let options = Options::new()
        .expect_warning(ENDED)
        .expect_warning(NONE_YET);
    let mut world = World::start(topology, options).await;
    world.supervisor().process().stop();
    let gateway = world.gateway();
    gateway.process().terminate();
    gateway.until_logged(TOLD, 1, MOMENT).await;
    assert!(gateway.process().is_running(), "{}", gateway.process());
    gateway.process().interrupt();
    assert!(gateway.process().exit(MOMENT).await.success());
    assert_eq!(gateway.logged(TOLD), 2, "{}", gateway.process());
    assert_eq!(gateway.logged("did not end in time"), 0);
    world.supervisor().process().resume();
    world.restart_gateway().await;
    world.until_sessions(2).await;
    world.rebase().await;
    world.settle().await;
}

async fn a_supervisor_that_is_told_twice_waits_for_nobody(topology: Topology) {
    let options = Options::new()
        .supervisor("stop_grace", "10m")
        .expect_warning("told to stop twice");
    let mut world = World::start(topology, options).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write(b"x").await.unwrap();
    assert_eq!(client.read(1).await, b"x");
    let sdk = world.client();
    let supervisor = world.take_supervisor();
    supervisor.process().interrupt();
    until_draining(&sdk).await;
    supervisor.process().terminate();
    assert_eq!(supervisor.process().exit(MOMENT).await.code(), Some(1));
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    assert!(!forward.closed_of(&client).await.is_finished());
    let seen = target.next().await.until_read_end().await;
    assert_eq!(seen.read_end, Some(Ended::Reset));
    until_no_session(&sdk).await;
    drop((client, sdk));
    world.start_supervisor().await;
    world.rebase().await;
    world.settle().await;
}
