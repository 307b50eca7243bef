//! Golden bytes of every message in both dialects, the numbers that collide, and round trips.

use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tidegate_lifecycle::cause::ForeignCode;
use tidegate_lifecycle::id::{
    ChannelId, GatewayId, Generation, HopName, InstanceId, SandboxName, SessionId,
};
use tidegate_lifecycle::session::{
    Accepted, FromGateway, FromSupervisor, Hello, RelayClose, RelayOpen,
};
use tidegate_lifecycle::{Capabilities, End, Origin, Reason, Target};

use super::*;
use crate::DecodeError;
use crate::message::PREFIX_LEN;

fn supervisor(bytes: &[u8]) -> Result<FromSupervisor, DecodeError> {
    decode_supervisor(Bytes::copy_from_slice(bytes))
}

fn gateway(bytes: &[u8]) -> Result<FromGateway, DecodeError> {
    decode_gateway(Bytes::copy_from_slice(bytes))
}

fn channel() -> ChannelId {
    ChannelId::new("c")
}

/// A message with `inner` as its member `number`.
fn member(number: u8, inner: &[u8]) -> Vec<u8> {
    [
        &[number << 3 | 2, u8::try_from(inner.len()).unwrap()],
        inner,
    ]
    .concat()
}

fn hello(inner: &[u8]) -> Result<Hello, DecodeError> {
    supervisor(&member(1, inner)).map(|said| match said {
        FromSupervisor::Hello(hello) => hello,
        other => panic!("{other:?}"),
    })
}

fn accepted(inner: &[u8]) -> Accepted {
    match gateway(&member(1, inner)) {
        Ok(FromGateway::Accepted(accepted)) => accepted,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_legacy_hello_is_read() {
    let said = hello(b"\x0a\x02sb\x12\x01i").unwrap();
    assert_eq!((said.sandbox.as_str(), said.instance.as_str()), ("sb", "i"));
    assert_eq!(
        (said.capabilities, said.protocol_version),
        (Capabilities::NONE, 1)
    );
}

#[test]
fn a_hello_survives_every_number_with_two_meanings() {
    // connection_epoch, supports_provider_readiness, redirected, redirect, config push
    let released = hello(b"\x0a\x02sb\x12\x01i\x18\x07\x20\x01\x28\x01\x30\x01\x38\x01");
    // 5 as repeated text, by the proposed revision
    let proposed = hello(b"\x0a\x02sb\x12\x01i\x2a\x14stream-half-close-v1\x2a\x01x");
    // 5 and unknown numbers in every other wire type there is
    let fixed32 = hello(b"\x0a\x02sb\x12\x01i\x2d\x01\x02\x03\x04");
    let fixed64 = hello(b"\x0a\x02sb\x12\x01i\x29\x01\x02\x03\x04\x05\x06\x07\x08");
    let group = hello(b"\x0a\x02sb\x12\x01i\x2b\x08\x01\x2c");
    for said in [released, proposed, fixed32, fixed64, group] {
        assert_eq!(said, hello(b"\x0a\x02sb\x12\x01i"));
    }
}

#[test]
fn a_bad_hello_names_its_field() {
    let field = "hello.sandbox_id";
    assert_eq!(hello(b""), Err(DecodeError::Missing { field }));
    assert_eq!(hello(b"\x12\x01i"), Err(DecodeError::Missing { field }));
    assert!(
        matches!(hello(b"\x0a\x02-x"), Err(DecodeError::Bad { field: named, .. }) if named == field)
    );
    assert_eq!(supervisor(b"\x0a\x05\x0a"), Err(DecodeError::Malformed));
}

#[test]
fn the_heartbeat_interval_is_read_in_both_dialects() {
    let interval = |inner| accepted(inner).heartbeat_interval;
    assert_eq!(interval(b"\x0a\x01s\x10\x0f"), Duration::from_secs(15));
    assert_eq!(
        interval(b"\x0a\x01s\xb2\x06\x02\x08\x0a"),
        Duration::from_secs(10)
    );
    assert_eq!(
        interval(b"\x0a\x01s\x10\x0f\xb2\x06\x02\x08\x0a"),
        Duration::from_secs(10)
    );
    assert_eq!(
        interval(b"\x0a\x01s"),
        Duration::from_secs(15),
        "nothing said"
    );
}

#[test]
fn an_acceptance_survives_every_number_with_two_meanings() {
    let bootstrap = accepted(b"\x0a\x01s\x10\x0f\x1a\x03\x0a\x01u\x20\x01");
    let proposed = accepted(b"\x0a\x01s\x10\x0f\x1a\x14stream-half-close-v1");
    for said in [bootstrap, proposed] {
        assert_eq!(said, accepted(b"\x0a\x01s\x10\x0f"));
        assert_eq!(said.capabilities, Capabilities::NONE);
    }
    let field = "session_accepted.session_id";
    assert_eq!(
        gateway(&member(1, b"")),
        Err(DecodeError::Missing { field })
    );
}

#[test]
fn a_flood_of_homes_and_addresses_is_cut() {
    let many = hello(b"\x0a\x02sb\xd0\x0c\xff\xff\x03").unwrap();
    assert_eq!(many.homes, Hello::MAX_HOMES);
    // 1,000 of them, which are 10,000 bytes.
    let mut drain = b"\xc2\x0c\x90\x4e".to_vec();
    drain.extend(b"\x12\x08http://a".repeat(1_000));
    let Ok(FromGateway::SessionDrain { alternatives, .. }) = gateway(&drain) else {
        panic!("it can be read");
    };
    assert_eq!(alternatives.len(), 64);
}

#[test]
fn an_acceptance_says_the_interval_twice_and_never_zero() {
    let said = |interval| {
        encode_gateway(&FromGateway::Accepted(Accepted {
            session: SessionId::new("s"),
            generation: Generation::new(0),
            heartbeat_interval: interval,
            capabilities: Capabilities::NONE,
            gateway: String::new(),
            gateways: Vec::new(),
            public_url: None,
        }))
    };
    assert_eq!(
        said(Duration::from_secs(15)),
        &b"\x00\x00\x00\x00\x0c\x0a\x0a\x0a\x01s\x10\x0f\xb2\x06\x02\x08\x0f"[..]
    );
    let short = said(Duration::from_millis(150));
    assert!(
        short.windows(2).any(|pair| pair == b"\x10\x01"),
        "{short:?}"
    );
}

#[test]
fn a_member_nobody_knows_is_unknown() {
    assert_eq!(supervisor(b""), Ok(FromSupervisor::Unknown));
    assert_eq!(
        supervisor(b"\x2a\x03\x0a\x01u"),
        Ok(FromSupervisor::Unknown)
    ); // config result
    assert_eq!(gateway(b"\x32\x03\x0a\x01e"), Ok(FromGateway::Unknown)); // redirect
    assert_eq!(gateway(b"\x3a\x00"), Ok(FromGateway::Unknown)); // config update
    assert_eq!(gateway(b"\xca\x0c\x00"), Ok(FromGateway::Unknown)); // 201
}

#[test]
fn legacy_requests_for_a_relay_are_read() {
    let open = |inner: &[u8]| match gateway(&member(4, inner)) {
        Ok(FromGateway::RelayOpen(open)) => Ok((open.target, open.dial_timeout, open.lane)),
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error),
    };
    let tcp = Target::tcp("h", 80).unwrap();
    assert_eq!(
        open(b"\x0a\x01c\x1a\x05\x0a\x01h\x10\x50\x2a\x01x"),
        Ok((tcp, None, 0))
    );
    assert_eq!(open(b"\x0a\x01c\x12\x00"), Ok((Target::Ssh, None, 0)));
    assert_eq!(
        open(b"\x0a\x01c"),
        Ok((Target::Ssh, None, 0)),
        "no target is SSH"
    );
    assert_eq!(
        open(b"\x12\x00"),
        Err(DecodeError::Missing {
            field: "channel_id"
        })
    );
    assert!(matches!(
        open(b"\x0a\x01c\x1a\x00"),
        Err(DecodeError::Bad { .. })
    ));
}

#[test]
fn a_failure_without_a_cause_is_an_unreachable_target() {
    let result = |inner: &[u8]| match supervisor(&member(3, inner)) {
        Ok(FromSupervisor::RelayOpenResult { result, .. }) => result,
        other => panic!("{other:?}"),
    };
    assert_eq!(result(b"\x0a\x01c\x10\x01"), Ok(()));
    let end = End::new(Origin::Target, Reason::TargetUnreachable, "refused").on(channel());
    assert_eq!(result(b"\x0a\x01c\x1a\x07refused"), Err(end));
    let long = [&b"\x0a\x01c\x1a\xd0\x0f"[..], &[b'x'; 2000]].concat();
    let body = [&b"\x1a\xd6\x0f"[..], &long].concat();
    let Ok(FromSupervisor::RelayOpenResult {
        result: Err(end), ..
    }) = supervisor(&body)
    else {
        panic!("no failure")
    };
    assert_eq!(end.message.len(), 1024);
}

#[test]
fn a_close_is_an_abort_only_if_it_says_why() {
    let close = |inner: &[u8]| match supervisor(&member(4, inner)) {
        Ok(FromSupervisor::RelayClose(close)) => close,
        other => panic!("{other:?}"),
    };
    let text = "bye".to_owned();
    assert_eq!(
        close(b"\x0a\x01c\x12\x03bye"),
        RelayClose::Advisory {
            channel: channel(),
            text
        }
    );
    let by_code = |code, origin, reason| {
        let end = End::new(origin, reason, "bye").on(channel());
        let expected = RelayClose::Abort {
            channel: channel(),
            end,
        };
        assert_eq!(
            close(&[&b"\x0a\x01c\x12\x03bye\x18"[..], &[code]].concat()),
            expected
        );
    };
    by_code(1, Origin::Client, Reason::ClientCancelled);
    by_code(2, Origin::Supervisor, Reason::OperationTimeout);
    by_code(3, Origin::Supervisor, Reason::ProtocolViolation);
    by_code(4, Origin::Supervisor, Reason::TransportLost);
    by_code(77, Origin::Supervisor, Reason::TransportLost);
}

#[test]
fn a_reason_nobody_knows_leaves_its_code() {
    // cause { reason "NEW", origin "moon", message "m", status_code 7 }
    let cause = b"\x0a\x03NEW\x12\x04moon\x22\x01m\x28\x07";
    let inner = [
        &b"\x0a\x01c\xc2\x0c"[..],
        &[u8::try_from(cause.len()).unwrap()],
        cause,
    ]
    .concat();
    let Ok(FromGateway::RelayClose(RelayClose::Abort { end, .. })) = gateway(&member(5, &inner))
    else {
        panic!("no abort")
    };
    let reason = Reason::Foreign(ForeignCode::new(7));
    assert_eq!(end, End::new(Origin::Gateway, reason, "m").on(channel()));
}

fn ends() -> impl Strategy<Value = End> {
    let reasons = prop::sample::select(Reason::ALL.to_vec());
    let origins = prop::sample::select(Origin::ALL.to_vec());
    let hops = prop::collection::vec("[a-z0-9]{1,9}", 0..8);
    let retry = prop::option::of(0u32..100_000);
    (reasons, origins, hops, ".{0,60}", retry).prop_map(|(reason, origin, hops, message, retry)| {
        End {
            hops: hops.into_iter().map(HopName::new).collect(),
            retry_after: retry.map(|millis| Duration::from_millis(millis.into())),
            ..End::new(origin, reason, message).on(channel())
        }
    })
}

fn sets() -> impl Strategy<Value = Capabilities> {
    prop::sample::select(vec![
        Capabilities::NONE,
        Capabilities::STREAM,
        Capabilities::SESSION,
    ])
}

fn closes() -> impl Strategy<Value = RelayClose> {
    prop_oneof![
        ".{0,60}".prop_map(|text| RelayClose::Advisory {
            channel: channel(),
            text
        }),
        ends().prop_map(|end| RelayClose::Abort {
            channel: channel(),
            end
        }),
    ]
}

fn from_supervisor() -> impl Strategy<Value = FromSupervisor> {
    prop_oneof![
        (
            ("[a-z0-9]{1,9}", ".{0,9}", sets(), 1u32..9),
            (1..=Hello::MAX_HOMES, prop::option::of("[a-z]{1,9}")),
            prop::collection::vec("[a-z]{0,9}", 0..4),
        )
            .prop_map(
                |((name, instance, capabilities, protocol_version), (homes, replaces), held)| {
                    FromSupervisor::Hello(Hello {
                        sandbox: SandboxName::parse(&name).unwrap(),
                        instance: InstanceId::new(instance),
                        capabilities,
                        protocol_version,
                        homes,
                        replaces: replaces.map(SessionId::new),
                        held: held.into_iter().map(GatewayId::new).collect(),
                    })
                }
            ),
        Just(FromSupervisor::Heartbeat),
        Just(FromSupervisor::RelayOpenResult {
            channel: channel(),
            result: Ok(())
        }),
        ends().prop_map(|end| FromSupervisor::RelayOpenResult {
            channel: channel(),
            result: Err(end)
        }),
        closes().prop_map(FromSupervisor::RelayClose),
        any::<u32>().prop_map(|millis| FromSupervisor::Goodbye {
            deadline: Duration::from_millis(millis.into())
        }),
        Just(FromSupervisor::Unknown),
    ]
}

fn urls() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec("http://[a-z]{1,9}", 0..4)
}

fn from_gateway() -> impl Strategy<Value = FromGateway> {
    let targets = prop_oneof![
        Just(Target::Ssh),
        (1u32..65_536).prop_map(|port| Target::tcp("localhost", port).unwrap()),
    ];
    prop_oneof![
        ("[a-z]{1,9}", any::<u64>(), 1u32.., sets(), ".{0,9}", urls()).prop_map(
            |(session, generation, millis, capabilities, gateway, gateways)| {
                FromGateway::Accepted(Accepted {
                    session: SessionId::new(session),
                    generation: Generation::new(generation),
                    heartbeat_interval: Duration::from_millis(millis.into()),
                    capabilities,
                    gateway,
                    public_url: gateways.first().cloned(),
                    gateways,
                })
            }
        ),
        (any::<u32>(), urls()).prop_map(|(millis, alternatives)| FromGateway::SessionDrain {
            deadline: Duration::from_millis(millis.into()),
            alternatives,
        }),
        ".{0,60}".prop_map(|reason| FromGateway::Rejected { reason }),
        Just(FromGateway::Heartbeat),
        (targets, prop::option::of(any::<u32>()), any::<u32>()).prop_map(
            |(target, millis, lane)| FromGateway::RelayOpen(RelayOpen {
                channel: channel(),
                target,
                dial_timeout: millis.map(|millis| Duration::from_millis(millis.into())),
                lane,
            })
        ),
        closes().prop_map(FromGateway::RelayClose),
        Just(FromGateway::Unknown),
    ]
}

proptest! {
    #[test]
    fn what_a_supervisor_says_survives(said in from_supervisor()) {
        prop_assert_eq!(supervisor(&encode_supervisor(&said)[PREFIX_LEN..]), Ok(said));
    }

    #[test]
    fn what_a_gateway_says_survives(said in from_gateway()) {
        prop_assert_eq!(gateway(&encode_gateway(&said)[PREFIX_LEN..]), Ok(said));
    }

    #[test]
    fn garbage_does_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let _ = supervisor(&bytes);
        let _ = gateway(&bytes);
    }
}
