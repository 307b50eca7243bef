//! Cancelling streams that stand still: it gets through, and gives back what they held.

use std::time::Duration;

use h2::Reason;
use tidegate_e2e::raw::{self, Client};
use tidegate_e2e::{Forward, Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::fault_proxy::{Direction, FaultProxy};
use tidegate_testkit::messages::ForwardFrame;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Connection, Step, Target};

use crate::fairness::{fetch, until_blocked};
use crate::{MIB, MOMENT};

every_topology! {
    fc_03_cancelled_streams_give_their_window_back,
    fc_04_a_reset_gets_through_a_blocked_stream,
    fc_04_a_cancel_gets_through_a_blocked_stream,
    fc_10_a_stalled_stream_ends_at_both_ends_and_alone,
}

async fn fc_03_cancelled_streams_give_their_window_back(topology: Topology) {
    const AT_ONCE: usize = 25;
    let world = World::start(topology, Options::new()).await;
    let content = Content::new(sized(32, 64) * MIB, 3);
    let piece = Step::SendContent(Content::new(MIB, 0));
    let unread = Target::start([Step::Read(1), piece, Step::Hold]).unwrap();
    let source = Target::source(content).unwrap();
    let (download, cancelled) = (world.forward(&source).await, world.forward(&unread).await);
    let before = fetch(&download, content).await;
    for _ in 0..sized(250, 500) / AT_ONCE {
        let mut clients = Vec::new();
        for _ in 0..AT_ONCE {
            let client = cancelled.connect().await;
            client.write(b"?").await.unwrap();
            clients.push(client);
        }
        for client in clients {
            assert_eq!(client.read(1).await.len(), 1);
            client.reset();
        }
    }
    let after = fetch(&download, content).await;
    assert!(
        after < before * 3 + Duration::from_secs(1),
        "{after:?}, before {before:?}"
    );
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
        .supervisor_proxy()
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
