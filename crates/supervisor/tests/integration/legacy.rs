//! The supervisor at released gateways.

use std::time::Duration;

use crate::common::{Running, config};
use tidegate_testkit::content::Content;
use tidegate_testkit::legacy::{Dialect, Gateway, GatewayOptions, Session};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;
use tonic::{Code, Status};

const DIALECTS: [Dialect; 3] = [Dialect::Old, Dialect::New, Dialect::Proposed];

async fn start(options: GatewayOptions) -> (Gateway, Running, Session) {
    let gateway = Gateway::start(options).unwrap();
    let supervisor = Running::start(config(gateway.address()));
    let session = gateway.session().await;
    (gateway, supervisor, session)
}

async fn start_with(dialect: Dialect) -> (Gateway, Running, Session) {
    let options = GatewayOptions {
        dialect,
        ..GatewayOptions::default()
    };
    start(options).await
}

#[tokio::test]
async fn bytes_go_both_ways_and_nothing_new_is_said() {
    for dialect in DIALECTS {
        let (_gateway, _supervisor, session) = start_with(dialect).await;
        assert_eq!(session.hello().sandbox_id, "box");
        let target = Target::echo().unwrap();
        let mut relay = session
            .open("localhost", target.address().port())
            .await
            .unwrap();
        assert!(relay.init().capabilities.is_empty() && relay.init().session_id.is_empty());
        assert!(relay.send_content(Content::new(500_000, 3)).await);
        assert_eq!(relay.read(500_000).await.len(), 500_000, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_client_that_ends_first_gets_its_answer() {
    for dialect in DIALECTS {
        let (_gateway, _supervisor, session) = start_with(dialect).await;
        let target = Target::answer_after_end().unwrap();
        let mut relay = session
            .open("127.0.0.1", target.address().port())
            .await
            .unwrap();
        assert!(relay.send("12345").await);
        relay.finish();
        let end = relay.read_to_end().await;
        assert_eq!((end.bytes, end.surprises), (5, 0), "{dialect:?}");
        assert_eq!(end.outcome.code, Code::Ok, "{dialect:?}");
    }
}

#[tokio::test]
async fn a_target_that_ends_first_is_told_without_new_frames() {
    for dialect in DIALECTS {
        let (_gateway, _supervisor, session) = start_with(dialect).await;
        let target = Target::finish_first(Content::new(100_000, 1)).unwrap();
        let mut relay = session
            .open("127.0.0.1", target.address().port())
            .await
            .unwrap();
        let end = relay.read_to_end().await;
        assert_eq!((end.bytes, end.surprises), (100_000, 0), "{dialect:?}");
        assert!(relay.send("still").await);
        relay.finish();
        let seen = target.next().await.until_read_end().await;
        assert_eq!(
            (seen.bytes_read, seen.read_end),
            (5, Some(Ended::Eof)),
            "{dialect:?}"
        );
    }
}

#[tokio::test]
async fn a_refused_dial_is_answered_in_words() {
    let (_gateway, _supervisor, session) = start_with(Dialect::Old).await;
    let port = Target::echo().unwrap().address().port();
    let refused = session.open("127.0.0.1", port).await.unwrap_err();
    assert!(refused.error.contains("refused"), "{}", refused.error);
}

#[tokio::test]
async fn ss_19_a_gateway_without_heartbeats_is_not_timed_out() {
    let options = GatewayOptions {
        dialect: Dialect::New,
        heartbeat: Duration::from_millis(50),
        sends_heartbeats: false,
    };
    let (_gateway, mut supervisor, session) = start(options).await;
    assert!(supervisor.outlives(Duration::from_millis(500)).await);
    let target = Target::echo().unwrap();
    let mut relay = session
        .open("127.0.0.1", target.address().port())
        .await
        .unwrap();
    assert!(relay.send("alive").await);
    assert_eq!(relay.read(5).await, b"alive");
}

#[tokio::test]
async fn a_failed_session_is_followed_by_another() {
    let (gateway, _supervisor, session) = start_with(Dialect::Old).await;
    session.end(Status::unavailable("restarting")).await;
    gateway.session().await;
}
