//! One stream that stands still, and others that move.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_e2e::measure::{Samples, fetch_with, in_one_try, ping_pong, ping_pong_on};
use tidegate_e2e::world::open;
use tidegate_e2e::{Forward, Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::record::{Ended, Record};
use tidegate_testkit::target::{Connection, Target};
use tidegate_testkit::wait::{GENEROUS, within};

use crate::{MIB, MOMENT};

every_topology! {
    fc_01_a_client_that_does_not_read_slows_nobody_else,
    fc_01_a_stream_that_is_not_read_slows_no_other_on_its_connections,
    fc_06_many_streams_on_one_connection_all_get_on,
}

/// What everybody else gets, beside one that stands still.
#[derive(Debug)]
struct Beside {
    /// The download without the one that stands still, and with it.
    alone: Duration,
    beside: Duration,
    echo: Duration,
}

impl Beside {
    /// Four fifths of the speed, and an echo that hardly waits.
    fn is_fair(&self) -> bool {
        self.beside * 4 <= self.alone * 5 && self.echo < Duration::from_millis(50)
    }
}

/// What was measured while a sender stood still.
struct Measured {
    sender: Connection,
    beside: Duration,
    samples: Samples,
}

/// Measures when the next stream of `endless` is blocked, and checks that it stays so.
async fn beside_blocked(
    endless: &Target,
    beside: impl Future<Output = (Duration, Samples)>,
) -> Measured {
    let sender = endless.next().await;
    let blocked_at = until_blocked(&sender).await;
    let (beside, samples) = beside.await;
    assert_eq!(
        sender.seen().bytes_written,
        blocked_at,
        "the one whose client does not read is blocked"
    );
    Measured {
        sender,
        beside,
        samples,
    }
}

impl Measured {
    /// The stream that stood still was reset, which its sender has to notice.
    async fn after(self, alone: Duration) -> Beside {
        self.sender.until_write_fails(MOMENT).await;
        Beside {
            alone,
            beside: self.beside,
            echo: self.samples.percentile(99),
        }
    }
}

async fn fc_01_a_client_that_does_not_read_slows_nobody_else(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let (endless, echo) = (Target::endless().unwrap(), Target::echo().unwrap());
    let content = Content::new(sized(48, 100) * MIB, 1);
    let source = Target::source(content).unwrap();
    let stalled = world.forward(&endless).await;
    let download = world.forward(&source).await;
    let b = world.forward(&echo).await.connect().await;
    let measure = async || {
        let alone = fetch(&download, content).await;
        let a = stalled.connect().await;
        let beside = async {
            tokio::join!(
                fetch(&download, content),
                ping_pong(&b, &[b'.'; 64], 100, Duration::from_millis(2)),
            )
        };
        let measured = beside_blocked(&endless, beside).await;
        a.reset();
        measured.after(alone).await
    };
    in_one_try(measure, Beside::is_fair).await;
    drop(b);
    world.settle().await;
}

/// All on one connection to the gateway, and so on one of the supervisor's.
async fn fc_01_a_stream_that_is_not_read_slows_no_other_on_its_connections(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let (endless, echo) = (Target::endless().unwrap(), Target::echo().unwrap());
    let content = Content::new(sized(32, 100) * MIB, 1);
    let source = Target::source(content).unwrap();
    let client = world.client();
    let mut b = open(&client, echo.address()).await.unwrap();
    let measure = async || {
        let alone = fetch_with(&client, source.address(), content).await;
        let mut a = open(&client, endless.address()).await.unwrap();
        assert!(a.recv().await.unwrap().is_some());
        let beside = async {
            tokio::join!(
                fetch_with(&client, source.address(), content),
                ping_pong_on(&mut b, &[b'.'; 64], 100, Duration::from_millis(2)),
            )
        };
        let measured = beside_blocked(&endless, beside).await;
        a.reset();
        measured.after(alone).await
    };
    in_one_try(measure, Beside::is_fair).await;
    b.reset();
    drop(client);
    world.settle().await;
}

/// Waits until nothing more is taken from one who writes, and says how much was.
pub(crate) async fn until_blocked(writer: &Record) -> u64 {
    until_standing(|| writer.seen().bytes_written).await
}

/// Waits until a count of bytes that has begun to grow does not any more, and returns it.
pub(crate) async fn until_standing(count: impl Fn() -> u64) -> u64 {
    let standing = async {
        loop {
            let before = count();
            tokio::time::sleep(Duration::from_millis(500)).await;
            if before > 0 && count() == before {
                return before;
            }
        }
    };
    within(GENEROUS, "the writer to be blocked", standing).await
}

/// Downloads everything, checks it, and says how long that took.
pub(crate) async fn fetch(forward: &Forward, content: Content) -> Duration {
    let begun = Instant::now();
    let client = forward.connect().await;
    client.shutdown_write().unwrap();
    let seen = client.read_to_end_soon().await;
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    let took = begun.elapsed();
    let closed = forward.closed_of(&client).await;
    closed.assert_finished(0, content.len());
    took
}

async fn fc_06_many_streams_on_one_connection_all_get_on(topology: Topology) {
    const WORKERS: usize = 100;
    let rounds = sized(20, 100);
    let world = World::start(topology, Options::new()).await;
    let echo = Target::echo().unwrap();
    let client = world.client();
    let message = Content::new(10 * 1024, 6).to_vec();
    let round = async || {
        let mut stream = open(&client, echo.address()).await?;
        stream.send(&message).await?;
        stream.finish().await?;
        let mut echoed = Vec::new();
        while let Some(piece) = stream.recv().await? {
            echoed.extend_from_slice(&piece);
        }
        assert_eq!(echoed, message);
        stream.closed().await
    };
    let work = async || {
        for _ in 0..rounds {
            within(MOMENT, "one of many echoes", round()).await.unwrap();
        }
    };
    join_all((0..WORKERS).map(|_| work())).await;
    assert_eq!(echo.accepted(), WORKERS * rounds);
    drop(client);
    world.settle().await;
}
