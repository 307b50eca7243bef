//! nginx and HAProxy before the gateway, for clients and supervisor alike, with the settings that we
//! ship: what holds without them holds with them.

use std::time::Duration;

use tidegate_client::{Client, SandboxName};
use tidegate_e2e::balancer::{Balanced, Kind, replaced};
use tidegate_e2e::forward::Via;
use tidegate_e2e::{Forward, Options, SANDBOX, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::record::Ended;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait;

async fn forward(balanced: &Balanced, target: &Target) -> Forward {
    let target = target.address().to_string();
    Forward::start(Via::from_env(), &balanced.access, &target).await
}

/// Makes a test with each proxy of each case, a function `async fn(Kind)` beside it.
macro_rules! every_balancer {
    ($($name:ident: $kind:ident),+ => $cases:tt) => {
        $(mod $name {
            every_balancer!(@cases $kind, $cases);
        })+
    };
    (@cases $kind:ident, { $($case:ident),+ $(,)? }) => {
        $(
            #[tokio::test]
            async fn $case() {
                super::$case(super::Kind::$kind).await;
            }
        )+
    };
}

every_balancer! {
    nginx: Nginx, haproxy: Haproxy, haproxy_http: HaproxyHttp => {
        dep_05_a_client_that_ends_first_gets_its_answer,
        dep_05_a_target_that_ends_first_gets_the_rest_of_the_upload,
        dep_04_a_refusal_reaches_a_client_that_uploads,
        a_target_that_resets_is_told_apart,
        bulk_passes_one_way_and_then_the_other,
    }
}

async fn dep_05_a_client_that_ends_first_gets_its_answer(kind: Kind) {
    let balanced = Balanced::start(kind, Options::new()).await;
    let pause = Step::Pause(Duration::from_millis(500));
    let target = Target::start([Step::ReadToEnd, pause, Step::SendTotal]).unwrap();
    let forward = forward(&balanced, &target).await;
    let client = forward.connect().await;
    client.write(b"12345").await.unwrap();
    client.shutdown_write().unwrap();
    let seen = client.read_to_end_soon().await;
    assert_eq!(
        (&seen.head[..], seen.read_end),
        (&b"OK 5\n"[..], Some(Ended::Eof))
    );
    let target = target.next().await.until_read_end().await;
    assert_eq!((target.bytes_read, target.read_end), (5, Some(Ended::Eof)));
    forward.closed_of(&client).await.assert_finished(5, 5);
    drop(client);
    balanced.settle().await;
}

async fn dep_05_a_target_that_ends_first_gets_the_rest_of_the_upload(kind: Kind) {
    const SIZE: u64 = 1 << 20;
    let balanced = Balanced::start(kind, Options::new()).await;
    let (download, upload) = (Content::new(SIZE, 1), Content::new(SIZE, 2));
    let target = Target::finish_first(download).unwrap();
    let forward = forward(&balanced, &target).await;
    let client = forward.connect().await;
    let seen = client.read_to_end_soon().await;
    assert_eq!(
        (seen.sha256, seen.read_end),
        (download.sha256(), Some(Ended::Eof))
    );
    for piece in upload.to_vec().chunks(SIZE as usize / 20) {
        client.write(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    client.shutdown_write().unwrap();
    let seen = target.next().await.until_read_end().await;
    assert_eq!(
        (seen.sha256, seen.read_end),
        (upload.sha256(), Some(Ended::Eof))
    );
    forward.closed_of(&client).await.assert_finished(SIZE, SIZE);
    drop(client);
    balanced.settle().await;
}

/// The client's upload is on its way when the status comes, and the status arrives.
async fn dep_04_a_refusal_reaches_a_client_that_uploads(kind: Kind) {
    let balanced = Balanced::start(kind, Options::new()).await;
    let nobody = Target::silent().unwrap().address();
    let forward = Forward::start(Via::from_env(), &balanced.access, &nobody.to_string()).await;
    for _ in 0..20 {
        let Ok(local) = Socket::connect(forward.address()).await else {
            continue; // reset before we could look
        };
        assert_ne!(local.write_until_refused().await, Ended::Eof);
        let closed = forward.closed_of(&local).await;
        assert_eq!(
            (&*closed.reason, &*closed.origin),
            ("TARGET_REFUSED", "target")
        );
    }
    let client = Client::new(&balanced.access).unwrap();
    let sandbox = client.sandbox(&SandboxName::parse(SANDBOX).unwrap()).await;
    assert!(sandbox.is_ok(), "calls work beside: {sandbox:?}");
    drop(client);
    balanced.settle().await;
}

async fn a_target_that_resets_is_told_apart(kind: Kind) {
    let balanced = Balanced::start(kind, Options::new()).await;
    let target = Target::resetter(1000).unwrap();
    let forward = forward(&balanced, &target).await;
    let client = forward.connect().await;
    assert_eq!(client.read(1000).await.len(), 1000);
    target.next().await.cue();
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    let closed = forward.closed_of(&client).await;
    assert_eq!(
        (&*closed.reason, &*closed.origin),
        ("TARGET_RESET", "target")
    );

    let target = Target::sink().unwrap();
    let forward = self::forward(&balanced, &target).await;
    let client = forward.connect().await;
    client
        .write_content(Content::new(1 << 20, 1))
        .await
        .unwrap();
    let connection = target.next().await;
    connection.until_read(1).await;
    client.reset();
    connection.until_reset(wait::GENEROUS).await;
    balanced.settle().await;
}

async fn bulk_passes_one_way_and_then_the_other(kind: Kind) {
    let balanced = Balanced::start(kind, Options::new()).await;
    let content = Content::new(64 << 20, 3);
    let source = Target::source(content).unwrap();
    let down = forward(&balanced, &source).await;
    let client = down.connect().await;
    let seen = client.read_to_end_soon().await;
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    client.shutdown_write().unwrap();
    down.closed_of(&client)
        .await
        .assert_finished(0, content.len());

    let sink = Target::sink().unwrap();
    let up = forward(&balanced, &sink).await;
    let client = up.connect().await;
    client.write_content(content).await.unwrap();
    client.shutdown_write().unwrap();
    client.read_to_end_soon().await;
    assert_eq!(
        sink.next().await.until_closed().await.sha256,
        content.sha256()
    );
    up.closed_of(&client)
        .await
        .assert_finished(content.len(), 0);
    drop(client);
    balanced.settle().await;
}

/// Who passes the bytes on unread gets in nobody's way.
#[tokio::test]
async fn bulk_passes_both_ways_at_once() {
    let balanced = Balanced::start(Kind::Haproxy, Options::new()).await;
    let content = Content::new(64 << 20, 3);
    let target = Target::echo().unwrap();
    let forward = forward(&balanced, &target).await;
    let client = forward.connect().await;
    let upload = async {
        client.write_content(content).await.unwrap();
        client.shutdown_write().unwrap();
    };
    let (seen, ()) = tokio::join!(client.read_to_end_soon(), upload);
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    drop(client);
    balanced.settle().await;
}

/// A reader that pauses longer than a PING may take. nginx stops reading from the gateway meanwhile,
/// its PINGs included, so the gateway is told to be patient, as operations.md says.
#[tokio::test]
async fn a_paused_download_goes_on() {
    for (kind, ping_timeout) in [(Kind::Haproxy, "1s"), (Kind::Nginx, "24h")] {
        let options = Options::new()
            .gateway("ping_interval", "1s")
            .gateway("ping_timeout", ping_timeout);
        let balanced = Balanced::start(kind, options).await;
        let content = Content::new(32 << 20, 4);
        let source = Target::source(content).unwrap();
        let forward = forward(&balanced, &source).await;
        let client = forward.connect().await;
        assert_eq!(client.read(1000).await.len(), 1000);
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(client.read_to_end_soon().await.sha256, content.sha256());
        client.shutdown_write().unwrap();
        forward
            .closed_of(&client)
            .await
            .assert_finished(0, content.len());
        drop(client);
        balanced.settle().await;
    }
}

/// The proxy's limit on silence, and how often something must be said.
fn limit() -> Duration {
    sized(Duration::from_secs(2), Duration::from_secs(10))
}

/// For how long nothing may be cut.
fn patience() -> Duration {
    sized(Duration::from_secs(7), Duration::from_secs(300))
}

fn with_limits(settings: String) -> String {
    let limit = format!("{}s", limit().as_secs());
    let timeouts = [
        "client_body_timeout",
        "send_timeout",
        "grpc_read_timeout",
        "grpc_send_timeout",
    ];
    timeouts.iter().fold(settings, |settings, timeout| {
        replaced(
            &settings,
            &format!(" {timeout} 30d"),
            &format!(" {timeout} {limit}"),
        )
    })
}

fn seconds(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

#[tokio::test]
async fn dep_01_sessions_and_silent_streams_outlive_a_limit_on_silence() {
    let often = seconds(limit() * 3 / 10);
    let options = Options::new()
        .gateway("heartbeat_interval", often.clone())
        .gateway("stream_keepalive", often);
    let balanced = Balanced::with_settings(Kind::Nginx, options, with_limits).await;
    let target = Target::echo().unwrap();
    let forward = forward(&balanced, &target).await;
    let client = forward.connect().await;
    client.write(b"before").await.unwrap();
    assert_eq!(client.read(6).await, b"before");
    tokio::time::sleep(patience()).await;
    client.write(b"after").await.unwrap();
    assert_eq!(client.read(5).await, b"after");
    client.shutdown_write().unwrap();
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Eof));
    forward.closed_of(&client).await.assert_finished(11, 11);
    assert_eq!(
        balanced.world.sessions(),
        1,
        "the session was never dropped"
    );
    drop(client);
    balanced.settle().await;
}

/// What happens without: the limit bites, and the cut is no end of file.
#[tokio::test]
async fn dep_01_a_silent_stream_that_is_cut_is_reset() {
    let options = Options::new().gateway("heartbeat_interval", seconds(limit() * 3 / 10));
    let balanced = Balanced::with_settings(Kind::Nginx, options, with_limits).await;
    let target = Target::echo().unwrap();
    let forward = forward(&balanced, &target).await;
    let client = forward.connect().await;
    client.write(b"before").await.unwrap();
    assert_eq!(client.read(6).await, b"before");
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    target.next().await.until_reset(wait::GENEROUS).await;
    assert_eq!(forward.closed_of(&client).await.reason, "TRANSPORT_LOST");
    assert_eq!(
        balanced.world.sessions(),
        1,
        "the session was never dropped"
    );
    drop(client);
    balanced.settle().await;
}
