//! Every row of the table, in both directions.

use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use tidegate_lifecycle::id::{ChannelId, HopName};

use super::*;

fn foreign(code: u8) -> Reason {
    Reason::Foreign(ForeignCode::new(code))
}

fn rich(origin: Origin, reason: Reason) -> End {
    End {
        hops: vec![HopName::new("sup"), HopName::new("gw0")],
        retry_after: Some(Duration::from_millis(1500)),
        exit_code: Some(-3),
        ..End::new(origin, reason, "100 % of «it» failed\nbadly").on(ChannelId::new("c-1"))
    }
}

#[test]
fn the_table() {
    let groups = [
        (
            Code::Cancelled,
            "CLIENT_CANCELLED CLIENT_RESET OPERATOR_CLOSED",
        ),
        (
            Code::DeadlineExceeded,
            "INIT_TIMEOUT RELAY_OPEN_TIMEOUT DIAL_TIMEOUT OPERATION_TIMEOUT IDLE_TIMEOUT \
             HALF_CLOSE_IDLE WRITE_STALLED",
        ),
        (Code::InvalidArgument, "PROTOCOL_VIOLATION INVALID_REQUEST"),
        (
            Code::ResourceExhausted,
            "FRAME_TOO_LARGE LIMIT_PENDING LIMIT_STREAMS LIMIT_SESSIONS LIMIT_EXECS LIMIT_RATE \
             LIMIT_MEMORY LIMIT_RESOURCES",
        ),
        (
            Code::Unavailable,
            "PEER_VIOLATION TARGET_REFUSED TARGET_UNREACHABLE TARGET_RESET NO_SESSION \
             SUPERVISOR_LOST SUPERVISOR_STOPPED HEARTBEAT_TIMEOUT SUPERSEDED OWNER_LOST PEER_LOST \
             PEER_UNCONFIGURED TRANSPORT_LOST GATEWAY_DRAINING DIRECTORY_UNAVAILABLE",
        ),
        (Code::NotFound, "SANDBOX_NOT_FOUND CHANNEL_UNKNOWN"),
        (
            Code::FailedPrecondition,
            "CAPABILITY_REQUIRED VERSION_UNSUPPORTED STALE_SESSION STALE_OWNER EXEC_NOT_FOUND \
             EXEC_NOT_EXECUTABLE EXEC_BAD_WORKDIR EXEC_START_FAILED",
        ),
        (Code::AlreadyExists, "DUPLICATE_CHANNEL"),
        (Code::AlreadyExists, "DUPLICATE_SESSION"),
        (Code::PermissionDenied, "TARGET_NOT_ALLOWED NOT_PERMITTED"),
        (
            Code::Unauthenticated,
            "CREDENTIAL_INVALID CREDENTIAL_EXPIRED CREDENTIAL_REVOKED",
        ),
        (Code::Internal, "INTERNAL_ERROR"),
    ];
    let mut rows = 0;
    for (expected, words) in groups {
        for word in words.split_whitespace() {
            let reason = Reason::from_word(word).unwrap_or_else(|| panic!("no reason {word}"));
            assert_eq!(code(reason), expected, "{word}");
            rows += 1;
        }
    }
    assert_eq!(rows, Reason::ALL.len(), "every reason has its row");
}

#[test]
fn every_row_survives_trailers_and_the_library_both_ways() {
    let codes = (1..=16).map(foreign);
    for reason in Reason::ALL.iter().copied().chain(codes) {
        for origin in Origin::ALL {
            let end = rich(origin, reason);
            assert_eq!(parse(&trailers(&end), Origin::Client), Err(end.clone()));
            assert_eq!(from_tonic(&to_tonic(&end), Origin::Client), end);
            assert_eq!(to_tonic(&end).code(), code(reason));
        }
    }
    assert_eq!(parse(&ok(), Origin::Client), Ok(()));
}

#[test]
fn a_status_of_others_keeps_code_and_message() {
    let check = |pairs: &[(&'static str, &'static str)], reason, message: &str| {
        let headers: HeaderMap = pairs
            .iter()
            .map(|(key, value)| (key.parse().unwrap(), HeaderValue::from_static(value)))
            .collect();
        let end = End::new(Origin::Supervisor, reason, message);
        assert_eq!(parse(&headers, Origin::Supervisor), Err(end));
    };
    check(
        &[("grpc-status", "5"), ("grpc-message", "no%20such")],
        foreign(5),
        "no such",
    );
    check(&[("grpc-status", "2")], foreign(2), "");
    check(
        &[("grpc-status", "14"), ("grpc-status-details-bin", "!?")],
        foreign(14),
        "",
    );
    check(
        &[],
        Reason::TransportLost,
        "the call ended without a status",
    );
    check(
        &[("grpc-status", "17")],
        Reason::TransportLost,
        "the call ended without a status",
    );
    check(
        &[("grpc-status", "x")],
        Reason::TransportLost,
        "the call ended without a status",
    );
}

#[test]
fn a_failure_never_looks_like_success() {
    for number in [0, 17, 255] {
        let end = End::new(Origin::Gateway, foreign(number), "");
        assert_eq!(code(end.reason), Code::Unavailable);
        assert!(parse(&trailers(&end), Origin::Gateway).is_err());
    }
}

#[test]
fn details_that_contradict_the_status_are_ignored() {
    let mut headers = trailers(&rich(Origin::Target, Reason::TargetRefused));
    headers.insert("grpc-status", HeaderValue::from_static("7"));
    let end = parse(&headers, Origin::Gateway).unwrap_err();
    assert_eq!((end.origin, end.reason), (Origin::Gateway, foreign(7)));
    assert!(end.hops.is_empty());
}

#[test]
fn trailers_stay_small_whatever_an_end_holds() {
    let long = "ü".repeat(100_000);
    let mut end = End::new(Origin::Client, Reason::LimitMemory, &*long).on(ChannelId::new(&*long));
    end.hops = (0..8).map(|n| HopName::new(format!("{n}{long}"))).collect();
    let headers = trailers(&end);
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len())
        .sum();
    assert!(size < 8 * 1024, "{size}");
    let back = parse(&headers, Origin::Client).unwrap_err();
    assert_eq!(back.message.len(), MAX_MESSAGE);
    assert_eq!(back.hops.len(), 8);
}

#[test]
fn our_own_side_of_a_call_reports_a_loss_and_never_unknown() {
    let status = tonic::Status::from_error(Box::new(std::io::Error::other("cable cut")));
    let end = from_tonic(&status, Origin::Gateway);
    assert_eq!(
        end,
        End::new(Origin::Gateway, Reason::TransportLost, "cable cut")
    );
}

#[test]
fn http_without_grpc_has_a_code() {
    let check = |status: u16, code| {
        let end = from_http(status.try_into().unwrap(), Origin::Gateway);
        assert_eq!(super::code(end.reason), code, "{status}");
    };
    check(401, Code::Unauthenticated);
    check(403, Code::PermissionDenied);
    check(404, Code::Unimplemented);
    check(502, Code::Unavailable);
    check(418, Code::Unavailable);
}

#[test]
fn relay_close_codes_come_back_as_near_as_they_can() {
    for reason in Reason::ALL {
        let close = relay_close_code(*reason);
        assert!((1..=4).contains(&close));
        let (_, back) = relay_close_reason(close, Origin::Supervisor).unwrap();
        assert_eq!(relay_close_code(back), close);
        if close != 4 {
            assert_eq!(code(back), code(*reason));
        }
    }
    assert_eq!(relay_close_reason(0, Origin::Gateway), None);
    assert_eq!(
        relay_close_reason(99, Origin::Gateway),
        Some((Origin::Gateway, Reason::TransportLost))
    );
}

proptest! {
    #[test]
    fn details_from_strangers_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let end = read(Code::NotFound, "m", &bytes, Origin::Peer);
        prop_assert_eq!(code(end.reason), Code::NotFound);
    }
}
