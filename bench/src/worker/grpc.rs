//! As much gRPC and protobuf as holding a supervisor session takes, written by hand: this driver
//! must share no code with what it measures.

use bytes::{BufMut, Bytes, BytesMut};

/// What a current supervisor offers.
const CAPABILITIES: [&str; 6] = [
    "stream-half-close-v1",
    "stream-explicit-fin-v1",
    "relay-abort-v1",
    "frame-limit-v1",
    "session-liveness-v1",
    "session-drain-v1",
];

/// `SupervisorMessage { hello { sandbox_id, instance_id, capabilities } }`.
pub(super) fn hello(sandbox: &str, instance: &str) -> Bytes {
    let mut hello = BytesMut::new();
    put_field(&mut hello, 1, sandbox.as_bytes());
    put_field(&mut hello, 2, instance.as_bytes());
    for capability in CAPABILITIES {
        put_field(&mut hello, 200, capability.as_bytes());
    }
    let mut body = BytesMut::new();
    put_field(&mut body, 1, &hello);
    message(&body)
}

/// `SupervisorMessage { heartbeat {} }`.
pub(super) fn heartbeat() -> Bytes {
    let mut body = BytesMut::new();
    put_field(&mut body, 2, &[]);
    message(&body)
}

/// Whether the first bytes a gateway sent are `GatewayMessage { session_accepted … }`.
pub(super) fn is_accepted(first: &[u8]) -> bool {
    const SESSION_ACCEPTED: u8 = 1 << 3 | 2;
    first.get(5) == Some(&SESSION_ACCEPTED)
}

/// The gRPC frame around one message.
fn message(body: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(5 + body.len());
    framed.put_u8(0);
    framed.put_u32(u32::try_from(body.len()).expect("a few hundred bytes"));
    framed.put_slice(body);
    framed.freeze()
}

/// One length-delimited field.
fn put_field(buffer: &mut BytesMut, number: u64, content: &[u8]) {
    put_varint(buffer, number << 3 | 2);
    put_varint(buffer, content.len() as u64);
    buffer.put_slice(content);
}

fn put_varint(buffer: &mut BytesMut, mut value: u64) {
    while value >= 0x80 {
        buffer.put_u8(value as u8 | 0x80);
        value >>= 7;
    }
    buffer.put_u8(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_is_an_empty_second_field() {
        assert_eq!(&heartbeat()[..], [0, 0, 0, 0, 2, 0x12, 0]);
    }

    #[test]
    fn large_field_numbers_take_two_bytes() {
        let mut buffer = BytesMut::new();
        put_field(&mut buffer, 200, b"x");
        assert_eq!(&buffer[..], [0xc2, 0x0c, 1, b'x']);
    }
}
