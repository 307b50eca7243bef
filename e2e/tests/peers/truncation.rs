//! A connection that ends in the middle, without a word: TLS says no close_notify, HTTP/2 no
//! END_STREAM.

use tidegate_e2e::{Forward, Options, Topology, World, every_topology};
use tidegate_testkit::content::Content;
use tidegate_testkit::fault_proxy::{Direction, Ending, FaultProxy};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;

every_topology! {
    sec_11_a_download_that_is_cut_off_is_no_end,
    sec_11_an_upload_that_is_cut_off_is_no_end,
}

/// What a supervisor warns of when its session has ended, and when there is none yet.
const ENDED: &str = "session ended, dialling again";
const NONE_YET: &str = "no session, trying again";

const MIB: u64 = 1 << 20;
const WHOLE: Content = Content::new(4 * MIB, 11);

/// Cuts what has moved more than a part of the transfer: not the control stream.
fn cut(line: &FaultProxy, way: Direction) {
    line.cut_after(way, MIB, Ending::Fin);
}

fn options() -> Options {
    Options::new()
        .client_proxy()
        .supervisor_proxy()
        .expect_warning(ENDED)
        .expect_warning(NONE_YET)
}

async fn sec_11_a_download_that_is_cut_off_is_no_end(topology: Topology) {
    let world = World::start(topology, options()).await;
    let target = Target::source(WHOLE).unwrap();
    for (line, way) in [
        (world.client_proxy(), Direction::Downstream),
        (world.supervisor_proxy(), Direction::Upstream),
    ] {
        let forward: Forward = world.forward(&target).await;
        cut(line, way);
        let client = forward.connect().await;
        client.shutdown_write().unwrap();
        let seen = client.read_to_end_soon().await;
        assert_eq!(
            seen.read_end,
            Some(Ended::Reset),
            "{} bytes",
            seen.bytes_read
        );
        assert!(seen.bytes_read < WHOLE.len());
        assert!(!forward.closed_of(&client).await.is_finished());
        line.cut_after(way, u64::MAX, Ending::Fin);
    }
    let mut world = world;
    world.rebase().await;
    world.settle().await;
}

async fn sec_11_an_upload_that_is_cut_off_is_no_end(topology: Topology) {
    let world = World::start(topology, options()).await;
    let target = Target::sink().unwrap();
    for (line, way) in [
        (world.client_proxy(), Direction::Upstream),
        (world.supervisor_proxy(), Direction::Downstream),
    ] {
        let forward: Forward = world.forward(&target).await;
        cut(line, way);
        let client = forward.connect().await;
        // Once the path is open: what is cut off before that reaches no target, and tells it nothing.
        let taken = target.next().await;
        let _ = client.write_content(WHOLE).await; // may fail before all is written
        let seen = taken.until_read_end().await;
        assert_eq!(
            seen.read_end,
            Some(Ended::Reset),
            "{} bytes",
            seen.bytes_read
        );
        assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
        line.cut_after(way, u64::MAX, Ending::Fin);
    }
    let mut world = world;
    world.rebase().await;
    world.settle().await;
}
