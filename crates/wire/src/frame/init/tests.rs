//! Inits of every client, and what is wrong with bad ones.

use super::*;
use crate::frame::{Frame, FrameLimit, FrameReader};

fn own_bytes(message: Bytes) -> Bytes {
    let mut reader = FrameReader::new(FrameLimit::Legacy);
    reader.push(message);
    let Ok(Some(Frame::Init(init))) = reader.next() else {
        panic!("no init")
    };
    init
}

fn parse_forward(init: &'static [u8]) -> Result<ForwardInit, DecodeError> {
    ForwardInit::parse(&Bytes::from_static(init))
}

#[test]
fn a_legacy_client_offers_nothing() {
    // sandbox "sb", target tcp "h":80, token "t"
    let init = parse_forward(b"\x0a\x02sb\x32\x05\x0a\x01h\x10\x50\x3a\x01t").unwrap();
    assert_eq!(init.sandbox.as_str(), "sb");
    assert_eq!(init.target, Target::tcp("h", 80).unwrap());
    assert_eq!(
        (init.token.as_str(), init.capabilities),
        ("t", Capabilities::NONE)
    );
}

#[test]
fn a_newer_client_names_workspace_service_and_capabilities() {
    let init = parse_forward(
        b"\x0a\x02sb\x1a\x01w\x22\x01s\x2a\x00\x42\x14stream-half-close-v1\x42\x03x-y",
    )
    .unwrap();
    assert_eq!(
        (init.workspace.as_str(), init.service_id.as_str()),
        ("w", "s")
    );
    assert_eq!(init.target, Target::Ssh);
    assert_eq!(init.capabilities.names(), ["stream-half-close-v1"]);
}

#[test]
fn a_bad_forward_init_names_its_field() {
    let missing = |field| Err(DecodeError::Missing { field });
    assert_eq!(parse_forward(b""), missing("sandbox"));
    assert_eq!(parse_forward(b"\x2a\x00"), missing("sandbox"));
    assert_eq!(parse_forward(b"\x0a\x02sb"), missing("target"));
    assert_eq!(parse_forward(b"\x0a\x09sb"), Err(DecodeError::Malformed));
    let bad = |init, expected| match parse_forward(init) {
        Err(DecodeError::Bad { field, .. }) => assert_eq!(field, expected),
        other => panic!("{other:?}"),
    };
    bad(b"\x0a\x02-b\x2a\x00", "sandbox");
    bad(b"\x0a\x02sb\x32\x03\x0a\x01h", "target.tcp"); // port 0
    bad(b"\x0a\x02sb\x32\x07\x0a\x01h\x10\x80\x80\x04", "target.tcp"); // port 65536
    bad(b"\x0a\x02sb\x32\x02\x10\x50", "target.tcp"); // no host
}

#[test]
fn a_forward_init_survives_and_its_token_is_not_printed() {
    let sandbox = SandboxName::parse("sb").unwrap();
    for target in [Target::Ssh, Target::tcp("::1", 65_535).unwrap()] {
        let init = ForwardInit {
            workspace: "w".to_owned(),
            service_id: "web".to_owned(),
            token: "s3cret".to_owned(),
            ..ForwardInit::new(sandbox.clone(), target)
        };
        assert_eq!(
            ForwardInit::parse(&own_bytes(init.encode())).as_ref(),
            Ok(&init)
        );
        assert!(!format!("{init:?}").contains("s3cret"));
    }
}

#[test]
fn a_claim_names_its_channel_and_with_capabilities_its_session() {
    let parse = |init: &'static [u8]| RelayInit::parse(&Bytes::from_static(init));
    let legacy = parse(b"\x0a\x01c").unwrap();
    assert_eq!(
        (legacy.session, legacy.capabilities),
        (None, Capabilities::NONE)
    );
    assert_eq!(
        parse(b""),
        Err(DecodeError::Missing {
            field: "channel_id"
        })
    );
    assert_eq!(
        parse(b"\x0a\x01c\x12\x14stream-half-close-v1"),
        Err(DecodeError::Missing {
            field: "session_id"
        })
    );
    let ours = RelayInit {
        channel: ChannelId::new("c"),
        session: Some(SessionId::new("s")),
        capabilities: Capabilities::STREAM,
    };
    assert_eq!(RelayInit::parse(&own_bytes(ours.encode())), Ok(ours));
}
