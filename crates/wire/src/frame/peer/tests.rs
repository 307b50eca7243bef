//! Requests of released gateways and ours, byte by byte, and what is wrong with bad ones.

use tidegate_lifecycle::exec::Output;

use super::*;
use crate::exec::{Dialect, Direction, Item, ItemReader, encode};
use crate::frame::{Frame, FrameLimit, FrameReader, data_header, half_close, keepalive};
use crate::message;

fn parse(init: &'static [u8]) -> Result<PeerInit, DecodeError> {
    PeerInit::parse(&Bytes::from_static(init))
}

fn full() -> PeerInit {
    PeerInit {
        sandbox: SandboxName::parse("sb").unwrap(),
        channel: ChannelId::new("c"),
        target: Target::tcp("h", 80).unwrap(),
        requester: GatewayId::new("gw1"),
        capabilities: Capabilities::from_names(["frame-limit-v1"]),
        session: Some((SessionId::new("s"), Generation::new(300))),
        command: Relayed {
            program: "sh".to_owned(),
            kill_grace: Some(Duration::from_secs(2)),
        },
    }
}

#[test]
fn a_released_gateway_offers_nothing_and_knows_no_session() {
    // sandbox_id "sb", relay_open { channel_id "c", tcp { "h", 80 } }, requester "r"
    let init = parse(b"\x0a\x02sb\x12\x0a\x0a\x01c\x1a\x05\x0a\x01h\x10\x50\x1a\x01r").unwrap();
    assert_eq!(init.target, Target::tcp("h", 80).unwrap());
    assert_eq!(init.requester.as_str(), "r");
    assert_eq!(
        (init.capabilities, init.session, init.command),
        (Capabilities::NONE, None, Relayed::default())
    );
}

#[test]
fn a_request_without_a_target_means_ssh() {
    let init = parse(b"\x0a\x02sb\x12\x03\x0a\x01c\x1a\x01r").unwrap();
    assert_eq!(init.target, Target::Ssh);
}

#[test]
fn our_request_is_these_bytes() {
    let expected: &[u8] = &[
        b"\x0a\x02sb".as_slice(),
        b"\x12\x0a\x0a\x01c\x1a\x05\x0a\x01h\x10\x50",
        b"\x1a\x03gw1",
        b"\x22\x0eframe-limit-v1",
        b"\xc2\x0c\x01s",        // 200
        b"\xc8\x0c\xac\x02",     // 201
        b"\xd2\x0c\x02sh",       // 202
        b"\xda\x0c\x02\x08\x02", // 203
    ]
    .concat();
    let whole = full().encode();
    let mut reader = FrameReader::new(FrameLimit::Strict);
    reader.push(whole);
    let Ok(Some(Frame::Init(init))) = reader.next() else {
        panic!("no init")
    };
    assert_eq!(init, expected);
    assert_eq!(PeerInit::parse(&init), Ok(full()));
}

#[test]
fn every_target_survives() {
    for target in [Target::Ssh, Target::Exec, Target::tcp("::1", 22).unwrap()] {
        let before = PeerInit { target, ..full() };
        let mut reader = FrameReader::new(FrameLimit::Legacy);
        reader.push(before.encode());
        let Ok(Some(Frame::Init(init))) = reader.next() else {
            panic!("no init")
        };
        assert_eq!(PeerInit::parse(&init), Ok(before));
    }
}

#[test]
fn a_bad_request_names_its_field() {
    let missing = |field| Err(DecodeError::Missing { field });
    assert_eq!(parse(b""), missing("sandbox_id"));
    assert_eq!(parse(b"\x0a\x02sb"), missing("relay_open"));
    assert_eq!(
        parse(b"\x0a\x02sb\x12\x00"),
        missing("relay_open.channel_id")
    );
    assert_eq!(
        parse(b"\x0a\x02sb\x12\x03\x0a\x01c"),
        missing("requester_replica_id")
    );
    assert!(matches!(
        parse(b"\x0a\x02-b\x12\x03\x0a\x01c\x1a\x01r"),
        Err(DecodeError::Bad {
            field: "sandbox_id",
            ..
        })
    ));
    assert_eq!(parse(b"\x0a\x09sb"), Err(DecodeError::Malformed));
}

/// What the generated code writes for a frame of PeerRelay.
fn generated(payload: peer_relay_frame::Payload) -> Bytes {
    message::encode(&proto::PeerRelayFrame {
        payload: Some(payload),
    })
}

#[test]
fn the_other_frames_are_those_of_a_relay() {
    use peer_relay_frame::Payload;
    let data = generated(Payload::Data(Bytes::from_static(b"abc")));
    assert_eq!(data, [&data_header(3)[..], b"abc"].concat());
    assert_eq!(keepalive(), generated(Payload::Data(Bytes::new())));
    let fin = Payload::HalfClose(proto::StreamHalfClose {});
    assert_eq!(half_close(), generated(fin));
}

#[test]
fn what_is_said_to_a_command_and_by_one_is_what_a_relay_carries() {
    let output = Item::Output {
        output: Output::Stderr,
        data: Bytes::from_static(b"no"),
        sequence: 1,
        order: 2,
    };
    for (direction, item) in [
        (Direction::Input, Item::Stdin(Bytes::from_static(b"yes"))),
        (Direction::Event, output),
    ] {
        let (head, payload) = encode(Dialect::Relay, item.clone());
        let whole = Bytes::from([head, payload].concat());
        let body = whole.slice(message::PREFIX_LEN..);
        let frame = proto::PeerRelayFrame::decode(body).unwrap();
        let again = generated(frame.payload.unwrap());
        let mut reader = ItemReader::new(Dialect::Relay, direction, FrameLimit::Strict);
        for message in [whole, again] {
            reader.push(message);
            assert_eq!(reader.next(), Ok(Some(item.clone())));
        }
    }
}
