//! What a stream that stands still costs.

use std::time::Duration;

use tidegate_e2e::{Forward, Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::probe::resident_memory;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait::within;

use crate::MIB;
use crate::fairness::{until_blocked, until_standing};

every_topology! {
    fc_08_a_stalled_download_costs_little_and_arrives,
    fc_08_a_stalled_upload_costs_little_and_arrives,
    fc_08_a_hundred_stalled_streams_cost_a_hundred_times_little,
}

/// What one stalled stream may cost a process, as promised.
const EACH: u64 = 4 * MIB;

/// What an allocator keeps for later, and what tables and threads need.
const NOISE: u64 = 8 * MIB;

const PATIENCE: Duration = Duration::from_secs(120);

/// The resident memory of every program, one after the other.
#[derive(Debug)]
struct Memory(Vec<u64>);

impl Memory {
    /// What is held once every thread's allocator has what any load makes it take.
    async fn after_use(world: &World, forward: &Forward) -> Self {
        let echo = Target::echo().unwrap();
        let content = Content::new(16 * MIB, 0);
        for _ in 0..4 {
            let client = world.forward(&echo).await.connect().await;
            let upload = async {
                client.write_content(content).await.unwrap();
                client.shutdown_write().unwrap();
            };
            let (seen, ()) = tokio::join!(client.read_to_end_soon(), upload);
            assert_eq!(seen.sha256, content.sha256());
        }
        Self::of(world, forward)
    }

    fn of(world: &World, forward: &Forward) -> Self {
        let daemons = [world.gateway().process(), world.supervisor().process()];
        let processes = daemons.into_iter().chain(forward.process());
        Self(
            processes
                .map(|it| resident_memory(it.id()).unwrap())
                .collect(),
        )
    }

    fn assert_grew_less(&self, before: &Self, bound: u64) {
        let grew = self
            .0
            .iter()
            .zip(&before.0)
            .map(|(now, then)| now.saturating_sub(*then));
        let grew: Vec<u64> = grew.collect();
        assert!(
            grew.iter().all(|&grew| grew <= bound),
            "grew {grew:?} bytes, at most {bound}"
        );
    }
}

fn large() -> Content {
    Content::new(sized(256, 2048) * MIB, 8)
}

/// How long nobody reads.
fn stall() -> Duration {
    sized(Duration::from_secs(2), Duration::from_secs(30))
}

async fn fc_08_a_stalled_download_costs_little_and_arrives(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::source(large()).unwrap();
    let forward = world.forward(&target).await;
    let before = Memory::after_use(&world, &forward).await;
    let client = forward.connect().await;
    let connection = target.next().await;
    until_blocked(&connection).await;
    let blocked = Memory::of(&world, &forward);
    blocked.assert_grew_less(&before, EACH + NOISE);
    tokio::time::sleep(stall()).await;
    Memory::of(&world, &forward).assert_grew_less(&blocked, MIB);
    client.shutdown_write().unwrap();
    let seen = within(PATIENCE, "the whole download", client.read_to_end()).await;
    assert_eq!(
        (seen.sha256, seen.read_end),
        (large().sha256(), Some(Ended::Eof))
    );
    forward
        .closed_of(&client)
        .await
        .assert_finished(0, large().len());
    drop(client);
    world.settle().await;
}

async fn fc_08_a_stalled_upload_costs_little_and_arrives(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::start([Step::Cue, Step::ReadToEnd]).unwrap();
    let forward = world.forward(&target).await;
    let before = Memory::after_use(&world, &forward).await;
    let client = forward.connect().await;
    let upload = async {
        client.write_content(large()).await.unwrap();
        client.shutdown_write().unwrap();
    };
    let look = async {
        let record = client.record();
        until_blocked(&record).await;
        let blocked = Memory::of(&world, &forward);
        blocked.assert_grew_less(&before, EACH + NOISE);
        tokio::time::sleep(stall()).await;
        Memory::of(&world, &forward).assert_grew_less(&blocked, MIB);
        target.next().await.cue();
    };
    within(PATIENCE, "the whole upload", async {
        tokio::join!(upload, look)
    })
    .await;
    let seen = target.all()[0].until_read_end().await;
    assert_eq!(
        (seen.sha256, seen.read_end),
        (large().sha256(), Some(Ended::Eof))
    );
    forward
        .closed_of(&client)
        .await
        .assert_finished(large().len(), 0);
    drop(client);
    world.settle().await;
}

async fn fc_08_a_hundred_stalled_streams_cost_a_hundred_times_little(topology: Topology) {
    const STREAMS: u64 = 100;
    let world = World::start(topology, Options::new()).await;
    let target = Target::endless().unwrap();
    let forward = world.forward(&target).await;
    let before = Memory::after_use(&world, &forward).await;
    let mut clients = Vec::new();
    for _ in 0..STREAMS {
        clients.push(forward.connect().await);
    }
    let written = || target.all().iter().map(|it| it.seen().bytes_written).sum();
    until_standing(written).await;
    assert_eq!(target.accepted() as u64, STREAMS);
    let blocked = Memory::of(&world, &forward);
    blocked.assert_grew_less(&before, (STREAMS * EACH).min(256 * MIB) + NOISE);
    let buffered = world.gateway().metrics().sum("tidegate_buffered_bytes");
    assert!(buffered <= 256.0 * MIB as f64, "{buffered}");
    tokio::time::sleep(stall()).await;
    Memory::of(&world, &forward).assert_grew_less(&blocked, NOISE);
    drop(clients);
    world.settle().await;
}
