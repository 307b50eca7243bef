//! Released supervisors behind our gateway and client.

use tidegate_e2e::{Options, SANDBOX, Topology, World};
use tidegate_testkit::content::Content;
use tidegate_testkit::legacy::{Dialect, Supervisor, SupervisorOptions};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;

const DIALECTS: [Dialect; 3] = [Dialect::Old, Dialect::New, Dialect::Proposed];

async fn world(dialect: Dialect) -> (World, Supervisor) {
    let world = World::start(Topology::PLAINTEXT, Options::new().no_supervisor()).await;
    let supervisor = Supervisor::start(SupervisorOptions {
        dialect,
        ..SupervisorOptions::new(world.gateway_address(), SANDBOX)
    });
    let supervisor = supervisor.unwrap();
    supervisor.accepted().await;
    (world, supervisor)
}

#[tokio::test]
async fn ss_20_a_client_that_ends_first_gets_its_answer() {
    for dialect in DIALECTS {
        let (world, supervisor) = world(dialect).await;
        let target = Target::answer_after_end().unwrap();
        let forward = world.forward(&target).await;
        let client = forward.connect().await;
        client.write(b"12345").await.unwrap();
        client.shutdown_write().unwrap();
        let seen = client.read_to_end_soon().await;
        let seen = (&seen.head[..], seen.read_end);
        assert_eq!(seen, (&b"OK 5\n"[..], Some(Ended::Eof)), "{dialect:?}");
        let seen = target.next().await.until_read_end().await;
        assert_eq!((seen.bytes_read, seen.read_end), (5, Some(Ended::Eof)));
        forward.closed_of(&client).await.assert_finished(5, 5);
        drop((client, supervisor));
        world.settle().await;
    }
}

/// Released supervisors never end a relay by themselves: the end of file comes when the client ends
/// its side. What the proposed revision says in its hello is another thing in the released dialect,
/// so it counts as a released one.
#[tokio::test]
async fn a_target_that_ends_first_loses_no_byte() {
    for dialect in DIALECTS {
        let (world, supervisor) = world(dialect).await;
        let (download, upload) = (Content::new(1 << 20, 1), Content::new(1 << 20, 2));
        let target = Target::finish_first(download).unwrap();
        let forward = world.forward(&target).await;
        let client = forward.connect().await;
        let bytes = client.read(1 << 20).await;
        assert_eq!(bytes, download.to_vec());
        client.write_content(upload).await.unwrap();
        client.shutdown_write().unwrap();
        let seen = client.read_to_end_soon().await;
        assert_eq!(
            (seen.bytes_read, seen.read_end),
            (1 << 20, Some(Ended::Eof)),
            "{dialect:?}"
        );
        let seen = target.next().await.until_read_end().await;
        assert_eq!(
            (seen.sha256, seen.read_end),
            (upload.sha256(), Some(Ended::Eof))
        );
        drop((client, supervisor));
        world.settle().await;
    }
}

#[tokio::test]
async fn pf_13_a_target_that_resets_is_no_end() {
    for dialect in DIALECTS {
        let (world, supervisor) = world(dialect).await;
        let target = Target::resetter(1000).unwrap();
        let forward = world.forward(&target).await;
        let client = forward.connect().await;
        assert_eq!(client.read(1000).await.len(), 1000);
        target.next().await.cue();
        let seen = client.read_to_end_soon().await;
        assert_eq!(seen.read_end, Some(Ended::Reset), "{dialect:?}");
        assert!(!forward.closed_of(&client).await.is_finished());
        drop((client, supervisor));
        world.settle().await;
    }
}

#[tokio::test]
async fn pf_14_a_client_that_resets_is_no_end_of_a_download() {
    for dialect in DIALECTS {
        let (world, supervisor) = world(dialect).await;
        let target = Target::endless().unwrap();
        let forward = world.forward(&target).await;
        let client = forward.connect().await;
        client.read(100_000).await;
        client.reset();
        let connection = target.next().await;
        connection
            .until_write_fails(tidegate_testkit::wait::GENEROUS)
            .await;
        drop(supervisor);
        world.settle().await;
    }
}

#[tokio::test]
async fn pf_11_a_refused_target_resets_the_client() {
    for dialect in DIALECTS {
        let (world, supervisor) = world(dialect).await;
        let nobody = Target::echo().unwrap().address();
        let forward = world.forward_to(&nobody.to_string()).await;
        let client = forward.connect().await;
        let seen = client.read_to_end_soon().await;
        assert_eq!((seen.bytes_read, seen.read_end), (0, Some(Ended::Reset)));
        let closed = forward.closed_of(&client).await;
        assert_eq!(closed.reason, "TARGET_UNREACHABLE", "{dialect:?}");
        drop((client, supervisor));
        world.settle().await;
    }
}
