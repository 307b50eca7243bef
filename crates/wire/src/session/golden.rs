//! Every message of ours, byte by byte and by hand, in both directions.

use std::time::Duration;

use bytes::Bytes;
use tidegate_lifecycle::id::{
    ChannelId, GatewayId, Generation, HopName, InstanceId, SandboxName, SessionId,
};
use tidegate_lifecycle::session::{
    Accepted, FromGateway, FromSupervisor, Hello, RelayClose, RelayOpen,
};
use tidegate_lifecycle::{Capabilities, Capability, End, Origin, Reason, Target};

use super::*;
use crate::message;

fn supervisor(said: FromSupervisor, parts: &[&[u8]]) {
    let bytes = Bytes::from(parts.concat());
    assert_eq!(encode_supervisor(&said), message::frame(&bytes), "{said:?}");
    assert_eq!(decode_supervisor(bytes), Ok(said));
}

fn gateway(said: FromGateway, parts: &[&[u8]]) {
    let bytes = Bytes::from(parts.concat());
    assert_eq!(encode_gateway(&said), message::frame(&bytes), "{said:?}");
    assert_eq!(decode_gateway(bytes), Ok(said));
}

fn channel() -> ChannelId {
    ChannelId::new("c")
}

fn refused() -> End {
    End {
        hops: vec![HopName::new("sup")],
        retry_after: Some(Duration::from_secs(2)),
        ..End::new(Origin::Target, Reason::TargetRefused, "no").on(channel())
    }
}

/// The cause of [`refused`] as field 200.
const REFUSED: &[u8] = b"\xc2\x0c\x27\
    \x0a\x0eTARGET_REFUSED\
    \x12\x06target\
    \x1a\x03sup\
    \x22\x02no\
    \x28\x0e\
    \x32\x02\x08\x02";

#[test]
fn what_a_supervisor_says() {
    let hello = Hello {
        sandbox: SandboxName::parse("sb").unwrap(),
        instance: InstanceId::new("i"),
        capabilities: Capabilities::of([Capability::FrameLimit]),
        protocol_version: 1,
        homes: 1,
        replaces: None,
        held: Vec::new(),
    };
    supervisor(
        FromSupervisor::Hello(hello.clone()),
        &[
            b"\x0a\x1b",
            b"\x0a\x02sb",
            b"\x12\x01i",
            b"\xc2\x0c\x0eframe-limit-v1",
            b"\xc8\x0c\x01",
        ],
    );
    supervisor(
        FromSupervisor::Hello(Hello {
            homes: 2,
            replaces: Some(SessionId::new("old")),
            held: vec![GatewayId::new("gw0"), GatewayId::new("gw1")],
            ..hello
        }),
        &[
            b"\x0a\x30",
            b"\x0a\x02sb",
            b"\x12\x01i",
            b"\xc2\x0c\x0eframe-limit-v1",
            b"\xc8\x0c\x01",
            b"\xd0\x0c\x02",
            b"\xda\x0c\x03old",
            b"\xe2\x0c\x03gw0",
            b"\xe2\x0c\x03gw1",
        ],
    );
    supervisor(FromSupervisor::Heartbeat, &[b"\x12\x00"]);
    supervisor(
        FromSupervisor::RelayOpenResult {
            channel: channel(),
            result: Ok(()),
        },
        &[b"\x1a\x05", b"\x0a\x01c", b"\x10\x01"],
    );
    supervisor(
        FromSupervisor::RelayOpenResult {
            channel: channel(),
            result: Err(refused()),
        },
        &[b"\x1a\x31", b"\x0a\x01c", b"\x1a\x02no", REFUSED],
    );
    let text = "bye".to_owned();
    supervisor(
        FromSupervisor::RelayClose(RelayClose::Advisory {
            channel: channel(),
            text,
        }),
        &[b"\x22\x08", b"\x0a\x01c", b"\x12\x03bye"],
    );
    let deadline = Duration::from_millis(1_500);
    supervisor(
        FromSupervisor::Goodbye { deadline },
        &[
            b"\xc2\x0c\x0a",
            b"\x0a\x08",
            b"\x08\x01",
            b"\x10\x80\xca\xb5\xee\x01",
        ],
    );
}

#[test]
fn what_a_gateway_says() {
    let accepted = Accepted {
        session: SessionId::new("s"),
        generation: Generation::new(7),
        heartbeat_interval: Duration::from_secs(15),
        capabilities: Capabilities::of([Capability::FrameLimit]),
        gateway: "gw0".to_owned(),
        gateways: Vec::new(),
        public_url: None,
    };
    gateway(
        FromGateway::Accepted(accepted.clone()),
        &[
            b"\x0a\x24",
            b"\x0a\x01s",
            b"\x10\x0f",
            b"\xb2\x06\x02\x08\x0f",
            b"\xc2\x0c\x0eframe-limit-v1",
            b"\xca\x0c\x03gw0",
            b"\xd0\x0c\x07",
        ],
    );
    gateway(
        FromGateway::Accepted(Accepted {
            gateways: vec!["http://a".to_owned()],
            public_url: Some("http://a".to_owned()),
            ..accepted
        }),
        &[
            b"\x0a\x3a",
            b"\x0a\x01s",
            b"\x10\x0f",
            b"\xb2\x06\x02\x08\x0f",
            b"\xc2\x0c\x0eframe-limit-v1",
            b"\xca\x0c\x03gw0",
            b"\xd0\x0c\x07",
            b"\xda\x0c\x08http://a",
            b"\xe2\x0c\x08http://a",
        ],
    );
    gateway(
        FromGateway::SessionDrain {
            deadline: Duration::from_secs(300),
            alternatives: vec!["http://a".to_owned()],
        },
        &[
            b"\xc2\x0c\x0f",
            b"\x0a\x03\x08\xac\x02",
            b"\x12\x08http://a",
        ],
    );
    let reason = "full".to_owned();
    gateway(
        FromGateway::Rejected { reason },
        &[b"\x12\x06", b"\x0a\x04full"],
    );
    gateway(FromGateway::Heartbeat, &[b"\x1a\x00"]);
    let open = |target, dial_timeout, lane| {
        FromGateway::RelayOpen(RelayOpen {
            channel: channel(),
            target,
            dial_timeout,
            lane,
        })
    };
    gateway(
        open(
            Target::tcp("h", 80).unwrap(),
            Some(Duration::from_secs(10)),
            3,
        ),
        &[
            b"\x22\x12",
            b"\x0a\x01c",
            b"\x1a\x05\x0a\x01h\x10\x50",
            b"\xc2\x0c\x02\x08\x0a",
            b"\xc8\x0c\x03",
        ],
    );
    gateway(
        open(Target::Ssh, None, 0),
        &[b"\x22\x05", b"\x0a\x01c", b"\x12\x00"],
    );
    gateway(
        open(Target::Exec, None, 0),
        &[b"\x22\x06", b"\x0a\x01c", b"\xd2\x0c\x00"],
    );
    gateway(
        FromGateway::RelayClose(RelayClose::Abort {
            channel: channel(),
            end: refused(),
        }),
        &[
            b"\x2a\x4c",
            b"\x0a\x01c",
            b"\x12\x1bno (TARGET_REFUSED, target)",
            b"\x18\x04",
            REFUSED,
        ],
    );
}
