//! What peers must not send: each gets its code and reason, and nothing else notices.

use bytes::Bytes;
use http::HeaderMap;
use tidegate_testkit::messages::{
    ForwardFrame, ForwardInit, FromGateway, RelayFrame, TcpTarget, path as paths,
};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{Client, grpc};
use tonic::Code;

use crate::common::{Forward, Relay, Running, Supervisor, config, init, is, path, works};

const VIOLATION: &str = "PROTOCOL_VIOLATION";
const INVALID: &str = "INVALID_REQUEST";

/// A gateway, and a stream on the very connections that the bad input uses.
struct Bystanders {
    gateway: Running,
    client: Client,
    supervisor: Supervisor,
    forward: Forward,
    relay: Relay,
}

impl Bystanders {
    async fn new() -> Self {
        let gateway = Running::start(config()).await;
        let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
        let client = Client::connect(gateway.addr).await.unwrap();
        let (forward, relay) = path(&client, &mut supervisor, "known").await;
        Self {
            gateway,
            client,
            supervisor,
            forward,
            relay,
        }
    }

    async fn are_undisturbed(mut self) {
        works(&mut self.forward, &mut self.relay).await;
        self.supervisor.is_alive(self.gateway.addr).await;
        self.client.ping().await.unwrap();
        self.gateway.stop().await;
    }
}

async fn first_frames(client: &Client, frames: &[Bytes], finish: bool) -> Outcome {
    let mut forward = Forward::silent(client).await;
    for frame in frames {
        forward.outbox.send(frame.clone()).await.unwrap();
    }
    if finish {
        forward.outbox.finish().unwrap();
    }
    forward.outcome().await
}

#[tokio::test]
async fn a_first_frame_that_is_no_init() {
    let all = Bystanders::new().await;
    let data = grpc::frame(&ForwardFrame::data("x"));
    let fin = grpc::frame(&ForwardFrame::half_close());
    let empty = grpc::frame_bytes(0, b"");
    let unknown = grpc::frame_bytes(0, &[0x3a, 1, b'x']);
    let malformed = grpc::frame_bytes(0, &[0xff, 0xff]);
    let compressed = grpc::frame_bytes(1, b"x");
    for frame in [data, fin, empty, unknown, malformed, compressed] {
        let outcome = first_frames(&all.client, std::slice::from_ref(&frame), false).await;
        is(&outcome, Code::InvalidArgument, VIOLATION);
    }
    is(
        &first_frames(&all.client, &[], true).await,
        Code::InvalidArgument,
        VIOLATION,
    );
    all.are_undisturbed().await;
}

#[tokio::test]
async fn an_init_with_a_missing_or_bad_field_names_it() {
    let all = Bystanders::new().await;
    let tcp = |host: &str, port| {
        Some(TcpTarget {
            host: host.to_owned(),
            port,
        })
    };
    let good = init("known");
    let cases = [
        (
            "sandbox",
            ForwardInit {
                sandbox: String::new(),
                ..good.clone()
            },
        ),
        (
            "sandbox",
            ForwardInit {
                sandbox: "a b".to_owned(),
                ..good.clone()
            },
        ),
        (
            "target",
            ForwardInit {
                tcp: None,
                ..good.clone()
            },
        ),
        (
            "0 is not a port",
            ForwardInit {
                tcp: tcp("localhost", 0),
                ..good.clone()
            },
        ),
        (
            "65536 is not a port",
            ForwardInit {
                tcp: tcp("localhost", 65_536),
                ..good.clone()
            },
        ),
        (
            "host",
            ForwardInit {
                tcp: tcp("", 80),
                ..good
            },
        ),
    ];
    for (named, init) in cases {
        let outcome = Forward::open(&all.client, init).await.outcome().await;
        is(&outcome, Code::InvalidArgument, INVALID);
        assert!(outcome.message.contains(named), "{named}: {outcome:?}");
    }
    let unknown = Forward::open(&all.client, init("nobody"))
        .await
        .outcome()
        .await;
    is(&unknown, Code::NotFound, "SANDBOX_NOT_FOUND");
    all.are_undisturbed().await;
}

#[tokio::test]
async fn what_the_supervisor_does_not_allow_is_passed_on() {
    let mut all = Bystanders::new().await;
    let forward = Forward::open(&all.client, init("known")).await;
    let open = all.supervisor.asked().await;
    let cause = tidegate_testkit::messages::Cause {
        reason: "TARGET_NOT_ALLOWED".to_owned(),
        origin: "supervisor".to_owned(),
        message: "10.0.0.1:80 is not on the allowlist".to_owned(),
        ..Default::default()
    };
    let result = tidegate_testkit::messages::RelayOpenResult {
        channel_id: open.channel_id,
        success: false,
        error: String::new(),
        cause: Some(cause),
    };
    all.supervisor
        .say(tidegate_testkit::messages::FromSupervisor::RelayOpenResult(
            result,
        ))
        .await;
    let outcome = forward.outcome().await;
    is(&outcome, Code::PermissionDenied, "TARGET_NOT_ALLOWED");
    assert_eq!(outcome.origin, "supervisor");
    assert!(
        outcome
            .facts
            .iter()
            .any(|(name, value)| name == "hops" && value == "gw0")
    );
    all.are_undisturbed().await;
}

/// What an open stream must not carry, and with what it ends.
fn later() -> Vec<(&'static str, Vec<Bytes>, Code, &'static str)> {
    let frame = |frame: ForwardFrame| grpc::frame(&frame);
    let fin = || frame(ForwardFrame::half_close());
    let large = || frame(ForwardFrame::data(vec![0; 65_537]));
    let huge = || frame(ForwardFrame::data(vec![0; 5 << 20]));
    let bad = Code::InvalidArgument;
    vec![
        (
            "second init",
            vec![frame(ForwardFrame::init(init("known")))],
            bad,
            VIOLATION,
        ),
        ("FIN twice", vec![fin(), fin()], bad, VIOLATION),
        (
            "data after FIN",
            vec![fin(), frame(ForwardFrame::data("x"))],
            bad,
            VIOLATION,
        ),
        (
            "no payload",
            vec![grpc::frame_bytes(0, b"")],
            bad,
            VIOLATION,
        ),
        (
            "unknown payload",
            vec![grpc::frame_bytes(0, &[0x3a, 1, b'x'])],
            bad,
            VIOLATION,
        ),
        (
            "malformed",
            vec![grpc::frame_bytes(0, &[0xff, 0xff])],
            bad,
            VIOLATION,
        ),
        (
            "too large",
            vec![large()],
            Code::ResourceExhausted,
            "FRAME_TOO_LARGE",
        ),
        (
            "far too large",
            vec![huge()],
            Code::ResourceExhausted,
            "FRAME_TOO_LARGE",
        ),
    ]
}

#[tokio::test]
async fn frames_that_are_illegal_on_an_open_stream() {
    let mut all = Bystanders::new().await;
    for (what, frames, code, reason) in later() {
        let (mut forward, relay) = path(&all.client, &mut all.supervisor, "known").await;
        for frame in frames {
            let _ = forward.outbox.send(frame).await;
        }
        let outcome = forward.outcome().await;
        assert_eq!(
            (outcome.code, outcome.reason.as_str()),
            (code, reason),
            "{what}: {outcome:?}"
        );
        assert_eq!(outcome.origin, "client", "{what}");
        // The far side did nothing wrong, and is told so.
        let far = relay.answer.outcome().await;
        assert_eq!(
            (far.code, far.reason.as_str()),
            (Code::Unavailable, "PEER_VIOLATION"),
            "{what}"
        );
        let FromGateway::RelayClose(close) = all.supervisor.next().await else {
            panic!("{what}: the supervisor is told on its control stream too")
        };
        assert_eq!(close.cause.unwrap().reason, "PEER_VIOLATION", "{what}");
    }
    all.are_undisturbed().await;
}

#[tokio::test]
async fn frames_that_are_illegal_from_a_supervisor() {
    let mut all = Bystanders::new().await;
    let frame = |frame: RelayFrame| grpc::frame(&frame);
    let fin = || frame(RelayFrame::half_close());
    let cases = [
        ("FIN twice", vec![fin(), fin()], VIOLATION),
        (
            "data after FIN",
            vec![fin(), frame(RelayFrame::data("x"))],
            VIOLATION,
        ),
        ("no payload", vec![grpc::frame_bytes(0, b"")], VIOLATION),
        (
            "too large",
            vec![frame(RelayFrame::data(vec![0; 65_537]))],
            "FRAME_TOO_LARGE",
        ),
    ];
    for (what, frames, reason) in cases {
        let (forward, mut relay) = path(&all.client, &mut all.supervisor, "known").await;
        for frame in frames {
            let _ = relay.outbox.send(frame).await;
        }
        assert_eq!(relay.answer.outcome().await.reason, reason, "{what}");
        let far = forward.outcome().await;
        assert_eq!(
            (far.code, far.reason.as_str(), far.origin.as_str()),
            (Code::Unavailable, "PEER_VIOLATION", "supervisor"),
            "{what}"
        );
        let FromGateway::RelayClose(_) = all.supervisor.next().await else {
            panic!("{what}: the supervisor is told on its control stream too")
        };
    }
    all.are_undisturbed().await;
}

#[tokio::test]
async fn fc_12_frames_at_and_above_the_limit() {
    let mut all = Bystanders::new().await;
    // 65,536 bytes are fine from anyone; more only from a peer that promised no limit, and is split.
    for (capabilities, len) in [(true, 65_536), (false, 65_537), (false, 1 << 19)] {
        let mut init = init("known");
        if !capabilities {
            init.capabilities.clear();
        }
        let mut forward = Forward::open(&all.client, init).await;
        let mut relay = all.supervisor.serve().await;
        relay.headers().await;
        forward.headers().await;
        let sent = forward
            .outbox
            .send(grpc::frame(&ForwardFrame::data(vec![7; len])));
        let mut received = 0;
        let receive = async {
            while received < len {
                let tidegate_testkit::messages::RelayPayload::Data(data) = relay.next().await
                else {
                    panic!("only data was sent")
                };
                assert!(data.len() <= 65_536, "{} bytes in one frame", data.len());
                received += data.len();
            }
        };
        let (sent, ()) = tokio::join!(sent, receive);
        sent.unwrap();
        assert_eq!(received, len);
        drop(forward);
        let FromGateway::RelayClose(_) = all.supervisor.next().await else {
            panic!("the client has gone, and the supervisor is told")
        };
    }
    all.are_undisturbed().await;
}

#[tokio::test]
async fn a_relay_stream_must_begin_with_its_claim() {
    let all = Bystanders::new().await;
    for (frames, finish) in [
        (vec![grpc::frame(&RelayFrame::data("x"))], false),
        (vec![grpc::frame_bytes(0, b"")], false),
        (vec![], true),
    ] {
        let open = all.client.open(paths::RELAY_STREAM, HeaderMap::new());
        let mut call = open.await.unwrap();
        for frame in frames {
            call.outbox.send(frame).await.unwrap();
        }
        if finish {
            call.outbox.finish().unwrap();
        }
        let answer = crate::common::Answer::Waiting(call.response);
        is(&answer.outcome().await, Code::InvalidArgument, VIOLATION);
    }
    all.are_undisturbed().await;
}
