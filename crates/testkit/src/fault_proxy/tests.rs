//! The fault proxy does to a connection what it is told, and nothing else.

use std::time::Instant;

use super::*;
use crate::{
    content::Content,
    record::Ended,
    socket::Socket,
    target::{Connection, Target},
    wait::{self, GENEROUS},
};

struct Hop {
    target: Target,
    proxy: FaultProxy,
}

impl Hop {
    fn to(target: io::Result<Target>) -> Self {
        let target = target.unwrap();
        let proxy = FaultProxy::start(target.address()).unwrap();
        Self { target, proxy }
    }

    async fn connect(&self) -> (Socket, Connection) {
        let client = Socket::connect(self.proxy.address()).await.unwrap();
        (client, self.target.next().await)
    }
}

#[tokio::test]
async fn it_is_transparent_until_told_otherwise() {
    let content = Content::new(2_000_000, 3);
    let hop = Hop::to(Target::source(content));
    let (client, connection) = hop.connect().await;
    let upload = async {
        client.write_content(content).await.unwrap();
        client.shutdown_write().unwrap();
    };
    let (seen, ()) = tokio::join!(client.read_to_end_soon(), upload);
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    assert_eq!(connection.until_read_end().await.sha256, content.sha256());
    drop(client);
    wait::until_async(GENEROUS, async || hop.proxy.open() == 0)
        .await
        .unwrap();
    assert_eq!(hop.proxy.accepted(), 1);
}

#[tokio::test]
async fn a_reset_passes_through_either_way() {
    let hop = Hop::to(Target::resetter(10));
    let (client, connection) = hop.connect().await;
    client.read(10).await;
    connection.cue();
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));

    let hop = Hop::to(Target::sink());
    let (client, connection) = hop.connect().await;
    client.write(b"half").await.unwrap();
    client.reset();
    assert_eq!(
        connection.until_read_end().await.read_end,
        Some(Ended::Reset)
    );
}

#[tokio::test]
async fn a_reset_after_fin_is_noticed() {
    let hop = Hop::to(Target::silent());
    let (client, connection) = hop.connect().await;
    client.shutdown_write().unwrap();
    assert_eq!(connection.until_read_end().await.read_end, Some(Ended::Eof));
    client.reset();
    wait::until_async(GENEROUS, async || hop.proxy.open() == 0)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_held_direction_moves_nothing_and_loses_nothing() {
    let hop = Hop::to(Target::echo());
    let (client, connection) = hop.connect().await;
    hop.proxy.hold(Direction::Upstream);
    client.write(b"later").await.unwrap();
    let arrival = connection.until_read(1);
    assert!(
        tokio::time::timeout(Duration::from_millis(100), arrival)
            .await
            .is_err()
    );
    hop.proxy.pass(Direction::Upstream);
    assert_eq!(client.read(5).await, b"later");
}

#[tokio::test]
async fn a_discarded_direction_keeps_the_sender_happy() {
    let hop = Hop::to(Target::echo());
    let (client, connection) = hop.connect().await;
    hop.proxy.discard(Direction::Upstream);
    client
        .write_content(Content::new(16 << 20, 1))
        .await
        .unwrap();
    // The last of it may still be on its way to the proxy, which goes on to discard it.
    assert_eq!(
        (connection.seen().bytes_read, connection.seen().read_end),
        (0, None)
    );
}

#[tokio::test]
async fn a_delay_is_a_long_line_and_not_a_thin_one() {
    let content = Content::new(8 << 20, 4);
    let hop = Hop::to(Target::source(content));
    hop.proxy.delay(Direction::Both, Duration::from_millis(200));
    let started = Instant::now();
    let (client, _) = hop.connect().await;
    let seen = client.read_to_end_soon().await;
    assert_eq!(seen.sha256, content.sha256());
    assert!(started.elapsed() >= Duration::from_millis(200));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_rate_is_kept() {
    let hop = Hop::to(Target::source(Content::new(100_000, 5)));
    hop.proxy.rate(Direction::Downstream, Some(200_000));
    let started = Instant::now();
    let (client, _) = hop.connect().await;
    assert_eq!(client.read_to_end_soon().await.bytes_read, 100_000);
    assert!(started.elapsed() >= Duration::from_millis(400));
}

#[tokio::test]
async fn a_cut_comes_after_exactly_so_many_bytes() {
    for (ending, end) in [(Ending::Fin, Ended::Eof), (Ending::Reset, Ended::Reset)] {
        let hop = Hop::to(Target::endless());
        hop.proxy.cut_after(Direction::Downstream, 100_000, ending);
        let (client, connection) = hop.connect().await;
        let seen = client.read_to_end_soon().await;
        assert_eq!(seen.read_end, Some(end));
        if ending == Ending::Fin {
            assert_eq!(seen.bytes_read, 100_000);
            drop(client);
        }
        drop(hop.proxy);
        connection.until_write_fails(GENEROUS).await;
    }
}

#[tokio::test]
async fn ending_all_spares_later_connections() {
    let hop = Hop::to(Target::echo());
    let (first, _) = hop.connect().await;
    hop.proxy.end_all(Ending::Reset);
    assert_eq!(first.read_to_end_soon().await.read_end, Some(Ended::Reset));
    let (second, _) = hop.connect().await;
    second.write(b"x").await.unwrap();
    assert_eq!(second.read(1).await, b"x");
    hop.proxy.refuse(true);
    let third = Socket::connect(hop.proxy.address()).await.unwrap();
    assert_eq!(third.read_to_end_soon().await.read_end, Some(Ended::Reset));
}

#[tokio::test]
async fn stranded_connections_stand_still_while_later_ones_work() {
    let hop = Hop::to(Target::echo());
    let (stranded, far) = hop.connect().await;
    stranded.write(b"1").await.unwrap();
    assert_eq!(stranded.read(1).await, b"1");
    hop.proxy.strand();
    stranded.write(b"2").await.unwrap();
    let (later, _) = hop.connect().await;
    later.write(b"3").await.unwrap();
    assert_eq!(later.read(1).await, b"3");
    assert_eq!(far.seen().bytes_read, 1);
    hop.proxy.end_stranded(Ending::Reset);
    assert_eq!(far.until_read_end().await.read_end, Some(Ended::Reset));
    later.write(b"4").await.unwrap();
    assert_eq!(later.read(1).await, b"4");
}
