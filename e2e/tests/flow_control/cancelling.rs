//! Cancelling streams that stand still: it gets through, and gives back what they held.

use std::time::Duration;

use h2::Reason;
use tidegate_e2e::measure::fetch_with;
use tidegate_e2e::raw::{self, Client};
use tidegate_e2e::world::open;
use tidegate_e2e::{Forward, Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::fault_proxy::{Direction, FaultProxy};
use tidegate_testkit::messages::ForwardFrame;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Connection, Step, Target};
use tidegate_testkit::wait::{GENEROUS, within};

use crate::fairness::until_blocked;
use crate::{MIB, MOMENT};

every_topology! {
    fc_03_cancelled_streams_give_their_window_back,
    fc_04_a_reset_gets_through_a_blocked_stream,
    fc_04_a_cancel_gets_through_a_blocked_stream,
    fc_10_a_stalled_stream_ends_at_both_ends_and_alone,
    fc_10_a_stalled_upload_ends_at_both_ends_and_alone,
}

async fn fc_03_cancelled_streams_give_their_window_back(topology: Topology) {
    const AT_ONCE: usize = 25;
    let world = World::start(topology, Options::new()).await;
    let content = Content::new(sized(32, 64) * MIB, 3);
    let piece = Step::SendContent(Content::new(MIB, 0));
    let unread = Target::start([Step::Read(1), piece, Step::Hold]).unwrap();
    let source = Target::source(content).unwrap();
    // All on one connection to the gateway, and so on one of the supervisor's.
    let client = world.client();
    let before = fetch_with(&client, source.address(), content).await;
    for _ in 0..sized(250, 500) / AT_ONCE {
        let mut cancelled = Vec::new();
        for _ in 0..AT_ONCE {
            let mut stream = open(&client, unread.address()).await.unwrap();
            stream.send(b"?").await.unwrap();
            cancelled.push(stream);
        }
        for mut stream in cancelled {
            assert!(stream.recv().await.unwrap().is_some());
            stream.reset();
        }
    }
    let after = fetch_with(&client, source.address(), content).await;
    assert!(
        after < before * 3 + Duration::from_secs(1),
        "{after:?}, before {before:?}"
    );
    drop(client);
    world.settle().await;
}

async fn fc_04_a_reset_gets_through_a_blocked_stream(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::never_reader().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client
        .write_until_blocked(Duration::from_millis(500))
        .await
        .unwrap();
    client.reset();
    target.next().await.until_reset(MOMENT).await;
    world.settle().await;
}

async fn fc_04_a_cancel_gets_through_a_blocked_stream(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::never_reader().unwrap();
    let client = Client::connect(&world).await;
    let mut forward = client.forward(target.address(), &raw::STREAM).await;
    let filling = async {
        while forward
            .send(ForwardFrame::data(vec![0; 65_536]))
            .await
            .is_ok()
        {}
    };
    tokio::time::timeout(Duration::from_secs(2), filling)
        .await
        .unwrap_err();
    forward.reset(Reason::CANCEL);
    target.next().await.until_reset(MOMENT).await;
    drop((client, forward));
    world.settle().await;
}

async fn fc_10_a_stalled_stream_ends_at_both_ends_and_alone(topology: Topology) {
    let options = Options::new()
        .client_proxy()
        .gateway("write_stall_timeout", "1s");
    let world = World::start(topology, options).await;
    let (endless, echo) = (Target::endless().unwrap(), Target::echo().unwrap());
    let (stalling, echoing) = (world.forward(&endless).await, world.forward(&echo).await);
    stall(
        world.client_proxy(),
        Direction::Downstream,
        &stalling,
        &endless,
    )
    .await;
    works(&echoing).await;
    assert_eq!(world.sessions(), 1);
    world.settle().await;
}

/// The same towards the target. The line carries the control stream too, which outlives so short a
/// standstill.
async fn fc_10_a_stalled_upload_ends_at_both_ends_and_alone(topology: Topology) {
    let options = Options::new()
        .supervisor_proxy()
        .gateway("write_stall_timeout", "1s");
    let world = World::start(topology, options).await;
    let (sink, echo) = (Target::sink().unwrap(), Target::echo().unwrap());
    let (stalling, echoing) = (world.forward(&sink).await, world.forward(&echo).await);
    let client = stalling.connect().await;
    client.write(b"?").await.unwrap();
    let target = sink.next().await;
    target.until_read(1).await;
    world.supervisor_proxy().hold(Direction::Downstream);
    let refused = client.write_until_refused();
    let refused = within(GENEROUS, "the gateway to have enough", refused).await;
    assert_ne!(refused, Ended::Eof);
    let closed = stalling.closed_of(&client).await;
    assert_eq!(
        (&*closed.reason, &*closed.origin),
        ("WRITE_STALLED", "gateway")
    );
    world.supervisor_proxy().pass(Direction::Downstream);
    let seen = target.until_read_end().await;
    assert_eq!(seen.read_end, Some(Ended::Reset));
    drop(client);
    works(&echoing).await;
    assert_eq!(world.sessions(), 1);
    world.settle().await;
}

/// Stops `line` while a target sends without end, until the gateway has had enough, and lets it go.
async fn stall(line: &FaultProxy, way: Direction, forward: &Forward, endless: &Target) {
    let client = forward.connect().await;
    client.read(1).await;
    let target: Connection = endless.next().await;
    line.hold(way);
    let reading = client.read_to_end();
    let held = async {
        until_blocked(&target).await;
        target.until_write_fails(MOMENT).await;
        line.pass(way);
    };
    let (seen, ()) = tokio::join!(reading, held);
    assert_eq!(seen.read_end, Some(Ended::Reset));
    assert!(!forward.closed_of(&client).await.is_finished());
}

async fn works(echoing: &Forward) {
    let client = echoing.connect().await;
    client.write(b"still here").await.unwrap();
    assert_eq!(client.read(10).await, b"still here");
}
