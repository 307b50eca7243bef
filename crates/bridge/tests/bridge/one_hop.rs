//! Two tunnels over real HTTP/2: local program ─ tunnel ─ frames ─ tunnel ─ target.

use std::sync::Arc;
use std::time::Duration;

use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::{Cause, Origin, Reason};
use tidegate_testkit::content::Content;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;

use crate::common::Hop;

/// What the two neighbours agree on, in the three ways there are.
fn rows() -> [Capabilities; 3] {
    [
        Capabilities::NONE,
        Capabilities::from_names(["stream-half-close-v1"]),
        Capabilities::STREAM,
    ]
}

#[tokio::test]
async fn pf_01_a_client_that_ends_first_gets_its_answer() {
    for agreed in rows() {
        let target = Target::answer_after_end().unwrap();
        let mut hop = Hop::new(&target, agreed).await;
        let local = hop.open().await;
        local.write(b"hello").await.unwrap();
        local.shutdown_write().unwrap();
        let seen = local.read_to_end_soon().await;
        assert_eq!(
            (&seen.head[..], seen.read_end),
            (&b"OK 5\n"[..], Some(Ended::Eof))
        );
        hop.both_finish().await;
    }
}

#[tokio::test]
async fn pf_02_a_target_that_ends_first_gets_the_rest_of_the_upload() {
    for agreed in &rows()[1..] {
        let content = Content::new(1 << 20, 7);
        let target = Target::finish_first(content).unwrap();
        let mut hop = Hop::new(&target, *agreed).await;
        let local = hop.open().await;
        let download = local.read_to_end_soon().await;
        assert_eq!(
            (download.bytes_read, download.read_end),
            (1 << 20, Some(Ended::Eof))
        );
        local.write_content(content).await.unwrap();
        local.shutdown_write().unwrap();
        let upload = target.next().await.until_read_end().await;
        assert_eq!(
            (upload.sha256, upload.read_end),
            (content.sha256(), Some(Ended::Eof))
        );
        hop.both_finish().await;
    }
}

#[tokio::test]
async fn pf_04_the_tail_reaches_a_slow_reader() {
    let content = Content::new(8 << 20, 3);
    let target = Target::slow_sink(256 * 1024, Duration::from_millis(20)).unwrap();
    let mut hop = Hop::new(&target, Capabilities::STREAM).await;
    let local = hop.open().await;
    local.write_content(content).await.unwrap();
    local.shutdown_write().unwrap();
    let upload = target.next().await.until_read_end().await;
    assert_eq!(
        (upload.sha256, upload.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    drop(local);
    hop.both_finish().await;
}

#[tokio::test]
async fn pf_13_a_targets_reset_is_no_end_of_file() {
    for agreed in rows() {
        let target = Target::resetter(1000).unwrap();
        let mut hop = Hop::new(&target, agreed).await;
        let local = hop.open().await;
        assert_eq!(local.read(1000).await.len(), 1000);
        target.next().await.cue();
        assert_eq!(local.read_to_end_soon().await.read_end, Some(Ended::Reset));
        let cause = Cause::Reset {
            origin: Origin::Target,
            reason: Reason::TargetReset,
        };
        assert_eq!(hop.server_outcome().await.cause(), cause);
        assert_eq!(hop.client_outcome().await.cause(), cause);
    }
}

#[tokio::test]
async fn pf_14_a_clients_reset_is_no_end_of_file() {
    for agreed in rows() {
        let target = Target::sink().unwrap();
        let mut hop = Hop::new(&target, agreed).await;
        let local = hop.open().await;
        local.write(&[1; 100_000]).await.unwrap();
        let connection = target.next().await;
        connection.until_read(100_000).await;
        local.reset();
        assert_eq!(
            connection.until_read_end().await.read_end,
            Some(Ended::Reset)
        );
        let cancelled = Cause::Reset {
            origin: Origin::Client,
            reason: Reason::ClientCancelled,
        };
        assert_eq!(hop.server_outcome().await.cause(), cancelled);
    }
}

#[tokio::test]
async fn fc_04_a_reset_gets_through_a_stream_that_is_blocked_at_every_hop() {
    let target = Target::never_reader().unwrap();
    let mut hop = Hop::new(&target, Capabilities::STREAM).await;
    let local = hop.open().await;
    local
        .write_until_blocked(Duration::from_millis(300))
        .await
        .unwrap();
    let connection = target.next().await;
    local.reset();
    assert!(
        connection
            .until_reset(Duration::from_secs(30))
            .await
            .was_reset()
    );
    hop.server_outcome().await;
    hop.client_outcome().await;
}

#[tokio::test]
async fn pf_09_a_server_that_speaks_first_is_heard() {
    let target = Target::banner(vec![b'!'; 64]).unwrap();
    let mut hop = Hop::new(&target, Capabilities::STREAM).await;
    let local = hop.open().await;
    assert_eq!(local.read(64).await, vec![b'!'; 64]);
}

#[tokio::test]
async fn bulk_is_exact_both_ways_at_once() {
    let target = Target::echo().unwrap();
    let mut hop = Hop::new(&target, Capabilities::STREAM).await;
    let local = Arc::new(hop.open().await);
    let content = Content::new(32 << 20, 11);
    let writer = Arc::clone(&local);
    let write = async move {
        writer.write_content(content).await.unwrap();
        writer.shutdown_write().unwrap();
    };
    let ((), seen) = tokio::join!(write, local.read_to_end());
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    hop.both_finish().await;
    assert_eq!(hop.server.buffered.get(), 0);
}
