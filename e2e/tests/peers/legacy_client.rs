//! Released clients at our gateway and supervisor.

use std::time::{Duration, Instant};

use tidegate_e2e::{Options, SANDBOX, Topology, World};
use tidegate_testkit::content::Content;
use tidegate_testkit::legacy::{Client, Dialect};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait::GENEROUS;
use tonic::Code;

use crate::MOMENT;

const DIALECTS: [Dialect; 3] = [Dialect::Old, Dialect::New, Dialect::Proposed];
const SIZE: u64 = 1 << 20;

async fn world() -> World {
    World::start(Topology::PLAINTEXT, Options::new()).await
}

async fn connect(world: &World, dialect: Dialect) -> Client {
    Client::connect(world.client_address(), dialect)
        .await
        .unwrap()
}

#[tokio::test]
async fn ss_20_a_client_that_ends_first_gets_its_answer() {
    let world = world().await;
    let pause = Step::Pause(Duration::from_millis(300));
    let target = Target::start([Step::ReadToEnd, pause, Step::SendTotal]).unwrap();
    for dialect in DIALECTS {
        let client = connect(&world, dialect).await;
        let opening = client.forward(SANDBOX, "127.0.0.1", target.address().port());
        let mut forward = opening.await.unwrap();
        assert!(forward.send("12345").await);
        forward.finish();
        let end = forward.read_to_end().await;
        assert!(end.outcome.is_ok() && end.bytes == 5, "{dialect:?} {end:?}");
        let seen = target.next().await.until_read_end().await;
        assert_eq!((seen.bytes_read, seen.read_end), (5, Some(Ended::Eof)));
    }
    world.settle().await;
}

/// Without a frame for the target's FIN the client is told by the call's end, which also ends what
/// it still has to say.
#[tokio::test]
async fn a_target_that_ends_first_ends_the_call_of_a_silent_client() {
    let world = world().await;
    let content = Content::new(SIZE, 1);
    let target = Target::finish_first(content).unwrap();
    for dialect in [Dialect::Old, Dialect::New] {
        let client = connect(&world, dialect).await;
        let opening = client.forward(SANDBOX, "127.0.0.1", target.address().port());
        let mut forward = opening.await.unwrap();
        let begun = Instant::now();
        let end = forward.read_to_end().await;
        assert!(begun.elapsed() < MOMENT, "{:?}", begun.elapsed());
        assert_eq!((end.sha256, end.half_closes), (content.sha256(), 0));
        assert!(end.outcome.is_ok(), "{dialect:?} {end:?}");
        let seen = target.next().await.until_read_end().await;
        assert_eq!(
            seen.read_end,
            Some(Ended::Reset),
            "an upload that was never finished"
        );
    }
    world.settle().await;
}

#[tokio::test]
async fn a_target_that_ends_first_lets_a_talking_client_finish() {
    let world = world().await;
    let content = Content::new(SIZE, 2);
    let target = Target::finish_first(Content::new(10, 1)).unwrap();
    for dialect in DIALECTS {
        let client = connect(&world, dialect).await;
        let opening = client.forward(SANDBOX, "127.0.0.1", target.address().port());
        let mut forward = opening.await.unwrap();
        assert_eq!(forward.read(10).await.len(), 10);
        assert!(forward.send_content(content).await);
        forward.finish();
        let end = forward.read_to_end().await;
        assert!(end.outcome.is_ok(), "{dialect:?} {end:?}");
        assert_eq!(end.half_closes, usize::from(dialect == Dialect::Proposed));
        let seen = target.next().await.until_read_end().await;
        assert_eq!(
            (seen.sha256, seen.read_end),
            (content.sha256(), Some(Ended::Eof))
        );
    }
    world.settle().await;
}

#[tokio::test]
async fn pf_13_a_target_that_resets_is_no_end() {
    let world = world().await;
    let target = Target::resetter(1000).unwrap();
    for dialect in DIALECTS {
        let client = connect(&world, dialect).await;
        let opening = client.forward(SANDBOX, "127.0.0.1", target.address().port());
        let mut forward = opening.await.unwrap();
        assert_eq!(forward.read(1000).await.len(), 1000);
        target.next().await.cue();
        let outcome = forward.read_to_end().await.outcome;
        let seen = (outcome.code, &*outcome.reason);
        assert_eq!(seen, (Code::Unavailable, "TARGET_RESET"), "{dialect:?}");
    }
    world.settle().await;
}

#[tokio::test]
async fn pf_14_a_client_that_cancels_is_no_end() {
    let world = world().await;
    let target = Target::sink().unwrap();
    for dialect in DIALECTS {
        let client = connect(&world, dialect).await;
        let opening = client.forward(SANDBOX, "127.0.0.1", target.address().port());
        let forward = opening.await.unwrap();
        assert!(forward.send(vec![1; 100_000]).await);
        let connection = target.next().await;
        connection.until_read(100_000).await;
        drop((forward, client)); // the connection, and the call with it
        let seen = connection.until_read_end().await;
        assert_eq!(seen.read_end, Some(Ended::Reset), "{dialect:?}");
    }
    world.settle().await;
}

/// What tonic sends when everything of a call is dropped at once is a request that ends cleanly, and
/// a reset behind it. The reset counts where anything is left to abort.
#[tokio::test]
async fn a_cancelled_call_leaves_nothing() {
    let world = world().await;
    let target = Target::endless().unwrap();
    for dialect in DIALECTS {
        let client = connect(&world, dialect).await;
        let opening = client.forward(SANDBOX, "127.0.0.1", target.address().port());
        let mut forward = opening.await.unwrap();
        forward.read(100_000).await;
        forward.cancel();
        target.next().await.until_write_fails(GENEROUS).await;
    }
    world.settle().await;
}

#[tokio::test]
async fn what_cannot_be_opened_is_a_status_at_once() {
    let world = world().await;
    let nobody = Target::echo().unwrap().address();
    for dialect in DIALECTS {
        let client = connect(&world, dialect).await;
        let refused = client
            .forward(SANDBOX, "127.0.0.1", nobody.port())
            .await
            .unwrap_err();
        assert_eq!(
            (refused.code, &*refused.reason),
            (Code::Unavailable, "TARGET_REFUSED")
        );
    }
    world.settle().await;
}
