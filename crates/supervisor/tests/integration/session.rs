//! The session, seen by a gateway that speaks all of Tidegate.

use std::time::{Duration, Instant};

use crate::common::gateway::{CAPABILITIES, Gateway};
use crate::common::{Running, config};
use http::HeaderMap;
use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_supervisor::StopReason;
use tidegate_supervisor::config::{GatewayUrl, TimeScale};
use tidegate_testkit::messages::{
    Empty, FromGateway, FromSupervisor, RelayOpen, SessionRejected, TcpTarget,
};
use tidegate_testkit::raw_h2::Received;
use tidegate_wire::status;
use tonic::Code;

#[tokio::test]
async fn hello_says_who_it_is_and_what_it_understands() {
    let gateway = Gateway::start().await;
    let mut supervisor = Running::start(config(gateway.address()));
    let control = gateway.session().await;
    supervisor.live().await;
    assert_eq!(control.hello.sandbox_id, "box");
    assert!(!control.hello.instance_id.is_empty());
    assert_eq!(control.hello.capabilities, CAPABILITIES);
    assert_eq!(control.hello.protocol_version, 1);
}

#[tokio::test]
async fn ok_means_that_the_sandbox_was_removed() {
    let gateway = Gateway::start().await;
    let mut supervisor = Running::start(config(gateway.address()));
    let mut control = gateway.session().await;
    control.end(Code::Ok);
    supervisor.ended().await.unwrap();
}

#[tokio::test]
async fn another_instance_is_given_way_to() {
    let gateway = Gateway::start().await;
    let mut supervisor = Running::start(config(gateway.address()));
    let end = End::new(
        Origin::Gateway,
        Reason::Superseded,
        "superseded by instance 4711",
    );
    let mut control = gateway.session().await;
    control.end_with(status::trailers(&end));
    let StopReason::Superseded { end, .. } = supervisor.ended().await.unwrap_err() else {
        panic!("it has another reason");
    };
    assert_eq!(end.message, "superseded by instance 4711");
}

#[tokio::test]
async fn a_lost_session_is_followed_by_another() {
    let gateway = Gateway::start().await;
    let _supervisor = Running::start(config(gateway.address()));
    let first = gateway.session().await;
    let instance = first.hello.instance_id.clone();
    first.cut();
    let mut second = gateway.session().await;
    assert_eq!(second.hello.instance_id, instance);
    second.end(Code::Unavailable);
    gateway.session().await;
}

#[tokio::test]
async fn ss_07_a_gateway_that_comes_back_is_found() {
    let gateway = Gateway::start().await;
    let address = gateway.address();
    let mut supervisor = Running::start(config(address));
    let control = gateway.session().await;
    drop((control, gateway));
    assert!(supervisor.outlives(Duration::from_millis(300)).await);
    let listener = std::net::TcpListener::bind(address).unwrap();
    let accepted = tokio::task::spawn_blocking(move || listener.accept());
    accepted.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_other_address_is_tried_at_once() {
    let (first, second) = (Gateway::start().await, Gateway::start().await);
    let mut config = config(first.address());
    let second_url = GatewayUrl(format!("http://{}", second.address()));
    config.gateway.push(second_url);
    config.redial_min = Duration::from_secs(20);
    config.redial_max = Duration::from_secs(20);
    let mut supervisor = Running::start(config);
    let control = first.session().await;
    supervisor.live().await;
    let begun = Instant::now();
    control.cut();
    second.session().await;
    assert!(
        begun.elapsed() < Duration::from_secs(15),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn ss_21_a_refusal_is_no_hot_loop() {
    for code in [
        Code::Unauthenticated,
        Code::PermissionDenied,
        Code::FailedPrecondition,
    ] {
        let gateway = Gateway::start().await;
        let mut config = config(gateway.address());
        config.time_scale = TimeScale(60.0);
        let _supervisor = Running::start(config);
        let mut control = gateway.hello().await;
        control.end(code);
        let begun = Instant::now();
        gateway.hello().await;
        // 30 s, sixty times as fast.
        let waited = begun.elapsed();
        assert!(
            waited > Duration::from_millis(450),
            "{code:?} after {waited:?}"
        );
    }
}

#[tokio::test]
async fn a_rejection_is_explained_by_its_status() {
    let gateway = Gateway::start().await;
    let mut supervisor = Running::start(config(gateway.address()));
    let mut control = gateway.hello().await;
    let reason = "no room".to_owned();
    control
        .say(FromGateway::SessionRejected(SessionRejected { reason }))
        .await;
    control.end(Code::ResourceExhausted);
    // Not the slow row, which a bare rejection is in.
    let _session = gateway.session().await;
    supervisor.live().await;
}

#[tokio::test]
async fn what_is_no_answer_to_hello_is_none() {
    let gateway = Gateway::start().await;
    let _supervisor = Running::start(config(gateway.address()));
    let mut control = gateway.hello().await;
    control.say(FromGateway::Heartbeat(Empty {})).await;
    let ended = control.heard_or_end().await;
    assert!(matches!(ended, Err(Received::Lost(_))), "{ended:?}");
    gateway.session().await;
}

#[tokio::test]
async fn ss_03_three_silent_intervals_end_a_session() {
    let gateway = Gateway::start().await;
    let _supervisor = Running::start(config(gateway.address()));
    let interval = Duration::from_millis(200);
    let mut control = gateway.session_with(interval).await;
    let begun = Instant::now();
    let mut beats = 0;
    let ended = loop {
        match control.heard_or_end().await {
            Ok(FromSupervisor::Heartbeat(_)) => beats += 1,
            Ok(other) => panic!("{other:?}"),
            Err(end) => break end,
        }
    };
    let lived = begun.elapsed();
    assert!(matches!(ended, Received::Lost(_)), "{ended:?}");
    assert!((1..=3).contains(&beats), "{beats} heartbeats");
    // That it is not much more, the number of heartbeats says.
    assert!(lived > interval * 2, "{lived:?}");
    gateway.session().await;
}

#[tokio::test]
async fn any_message_is_a_sign_of_life() {
    let gateway = Gateway::start().await;
    let mut supervisor = Running::start(config(gateway.address()));
    let mut control = gateway.session_with(Duration::from_millis(200)).await;
    for _ in 0..10 {
        control.beat().await;
        assert!(supervisor.outlives(Duration::from_millis(100)).await);
    }
    supervisor.stop();
    let goodbye = control.heard().await;
    assert!(matches!(goodbye, FromSupervisor::Goodbye(_)), "{goodbye:?}");
}

#[tokio::test]
async fn ss_15_a_stop_is_said_and_then_the_session_ends_cleanly() {
    let gateway = Gateway::start().await;
    let mut supervisor = Running::start(config(gateway.address()));
    let mut control = gateway.session().await;
    supervisor.live().await;
    supervisor.stop();
    let FromSupervisor::Goodbye(goodbye) = control.heard().await else {
        panic!("no goodbye");
    };
    assert_eq!(goodbye.deadline.unwrap().seconds, 10);
    let end = control.heard_or_end().await;
    assert!(matches!(end, Err(Received::End)), "{end:?}");
    control.end(Code::Ok);
    supervisor.ended().await.unwrap();
}

#[tokio::test]
async fn a_stop_without_a_session_is_at_once() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut supervisor = Running::start(config(nobody.local_addr().unwrap()));
    let _silent = nobody.accept().await.unwrap();
    supervisor.stop();
    supervisor.ended().await.unwrap();
}

#[tokio::test]
async fn the_token_is_shown_and_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "first\n").unwrap();
    let gateway = Gateway::start().await;
    let mut config = config(gateway.address());
    config.token_file = Some(path.clone());
    let _supervisor = Running::start(config);
    let control = gateway.session().await;
    assert_eq!(bearer(&control.metadata), "Bearer first");
    std::fs::write(&path, "second").unwrap();
    control.cut();
    assert_eq!(bearer(&gateway.session().await.metadata), "Bearer second");
}

/// Each refusal repeats a name of almost a megabyte, and none of them is read.
#[tokio::test]
async fn a_gateway_that_does_not_read_its_control_stream_is_given_up() {
    let gateway = Gateway::start().await;
    let mut supervisor = Running::start(config(gateway.address()));
    let mut control = gateway.session().await;
    supervisor.live().await;
    let open = |index| RelayOpen {
        channel_id: format!("{}{index}", "x".repeat(1_000_000)),
        tcp: Some(TcpTarget {
            host: "192.0.2.1".into(),
            port: 9,
        }),
        ..RelayOpen::default()
    };
    let mut asked = 0;
    while asked < 64 && control.offer(FromGateway::RelayOpen(open(asked))).await {
        asked += 1;
    }
    let _next = gateway.session().await;
    supervisor.live().await;
}

fn bearer(metadata: &HeaderMap) -> &str {
    metadata["authorization"].to_str().unwrap()
}
