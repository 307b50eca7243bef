//! Silence is healthy, and small things do not wait.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tidegate_e2e::measure::{Samples, in_one_try, ping_pong};
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};

use crate::MOMENT;

every_topology! {
    pf_21_a_half_that_never_ends_is_reaped_where_that_is_wanted,
    pf_21_a_half_that_moves_is_not,
    pf_21_an_open_connection_is_not,
    pf_28_small_messages_do_not_wait,
    pf_28_a_message_in_two_pieces_does_not_wait,
    pf_29_a_silent_connection_lives,
}

const IDLE: Duration = Duration::from_secs(1);

fn half_close_idle() -> Options {
    Options::new().gateway("half_close_idle", "1s")
}

async fn pf_21_a_half_that_never_ends_is_reaped_where_that_is_wanted(topology: Topology) {
    let world = World::start(topology, half_close_idle()).await;
    let target = Target::start([Step::ReadToEnd, Step::Hold]).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    let begun = Instant::now();
    client.shutdown_write().unwrap();
    let seen = client.read_to_end_soon().await;
    let waited = begun.elapsed();
    assert_eq!(seen.read_end, Some(Ended::Reset));
    assert!(waited >= IDLE && waited < MOMENT, "{waited:?}");
    let closed = forward.closed_of(&client).await;
    assert_eq!(
        (&*closed.reason, &*closed.origin),
        ("HALF_CLOSE_IDLE", "gateway")
    );
    // It has read FIN, so that only a reset can end its hold.
    target.next().await.until_closed().await;
    drop(client);
    world.settle().await;
}

async fn pf_21_a_half_that_moves_is_not(topology: Topology) {
    let world = World::start(topology, half_close_idle()).await;
    let (every, times) = (Duration::from_millis(300), 10);
    let target = Target::start([Step::ReadToEnd, Step::Trickle { every, times }]).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.shutdown_write().unwrap();
    let seen = client.read_to_end_soon().await;
    assert_eq!(
        (seen.bytes_read, seen.read_end),
        (times.into(), Some(Ended::Eof))
    );
    forward
        .closed_of(&client)
        .await
        .assert_finished(0, times.into());
    drop(client);
    world.settle().await;
}

async fn pf_21_an_open_connection_is_not(topology: Topology) {
    let world = World::start(topology, half_close_idle()).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    tokio::time::sleep(3 * IDLE).await;
    ping_pong(&client, b"still here", 1, Duration::ZERO).await;
    drop(client);
    world.settle().await;
}

async fn pf_28_small_messages_do_not_wait(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    let measure = async || ping_pong(&client, &[b'.'; 64], 200, Duration::ZERO).await;
    let at_once = |samples: &Samples| {
        let delayed_ack = Duration::from_millis(38)..Duration::from_millis(60);
        samples.percentile(50) < Duration::from_millis(5)
            && samples.percentile(99) < Duration::from_millis(20)
            && samples.within(delayed_ack) <= 2
    };
    in_one_try(measure, at_once).await;
    drop(client);
    world.settle().await;
}

/// The target answers when it has both halves. With Nagle's algorithm the second one waits until the
/// first is acknowledged, which a receiver with nothing to say does late.
async fn pf_28_a_message_in_two_pieces_does_not_wait(topology: Topology) {
    const ROUNDS: usize = 60;
    let world = World::start(topology, Options::new()).await;
    let answer = [
        Step::Read(64),
        Step::Send(Bytes::from_static(&[b'.'; 32])),
        Step::Pause(Duration::from_millis(2)),
        Step::Send(Bytes::from_static(&[b'.'; 32])),
    ];
    let script: Vec<Step> = std::iter::repeat_n(answer, ROUNDS).flatten().collect();
    let target = Target::start(script).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    let mut samples = Samples::default();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        client.write(&[b'.'; 32]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2)).await;
        client.write(&[b'.'; 32]).await.unwrap();
        assert_eq!(client.read(64).await.len(), 64);
        samples.push(begun.elapsed());
    }
    let p50 = samples.percentile(50);
    assert!(p50 < Duration::from_millis(38), "{samples:?}");
    drop(client);
    world.settle().await;
}

/// Heartbeats and pings are scaled to about a second.
async fn pf_29_a_silent_connection_lives(topology: Topology) {
    let world = World::start(topology, Options::new().time_scale(15.0)).await;
    let target = Target::echo().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    ping_pong(&client, b"x", 1, Duration::ZERO).await;
    tokio::time::sleep(sized(Duration::from_secs(8), Duration::from_secs(60))).await;
    let samples = ping_pong(&client, b"x", 1, Duration::ZERO).await;
    assert!(
        samples.percentile(100) < Duration::from_secs(1),
        "{samples:?}"
    );
    assert_eq!(world.sessions(), 1);
    drop(client);
    world.settle().await;
}
