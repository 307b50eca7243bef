//! What precedes payload on the wire, and the frames that never differ.

use std::ops::Deref;

use bytes::Bytes;
use tidegate_lifecycle::limits::MAX_FRAME;

use crate::message::PREFIX_LEN;

/// The key of `data` in every frame message: field 2, length-delimited.
pub(crate) const DATA_KEY: u8 = 0x12;

/// The key of `half_close` in every frame message: field 3, length-delimited.
const HALF_CLOSE_KEY: u8 = 0x1a;

const FULL: Header = data_header(MAX_FRAME);
const EMPTY: Header = data_header(0);
const HALF_CLOSE: [u8; PREFIX_LEN + 2] = [0, 0, 0, 0, 2, HALF_CLOSE_KEY, 0];

/// The 7 to 9 bytes in front of a data frame's payload: gRPC prefix, protobuf key and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl Header {
    /// The longest header.
    pub const MAX_LEN: usize = PREFIX_LEN + 1 + Self::MAX_VARINT;

    const MAX_VARINT: usize = 3;
}

impl Deref for Header {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl From<Header> for Bytes {
    /// Allocates nothing for the header of a full frame.
    fn from(header: Header) -> Self {
        static FULL_BYTES: [u8; Header::MAX_LEN] = FULL.bytes;
        if header == FULL {
            Self::from_static(&FULL_BYTES)
        } else {
            Self::copy_from_slice(&header)
        }
    }
}

/// The header of a data frame with `payload` bytes.
///
/// # Panics
///
/// When the payload has 2 MiB or more; a frame of ours carries at most 64 KiB.
pub const fn data_header(payload: usize) -> Header {
    assert!(
        payload < 1 << (7 * Header::MAX_VARINT),
        "a frame carries at most 64 KiB"
    );
    let mut bytes = [0; Header::MAX_LEN];
    let mut len = PREFIX_LEN;
    bytes[len] = DATA_KEY;
    len += 1;
    let mut rest = payload;
    while rest >= 0x80 {
        bytes[len] = (rest & 0x7f) as u8 | 0x80;
        rest >>= 7;
        len += 1;
    }
    bytes[len] = rest as u8;
    len += 1;

    let message = (len - PREFIX_LEN + payload) as u32;
    let [a, b, c, d] = message.to_be_bytes();
    (bytes[1], bytes[2], bytes[3], bytes[4]) = (a, b, c, d);
    Header {
        bytes,
        len: len as u8,
    }
}

/// The whole message that is FIN.
pub const fn half_close() -> Bytes {
    Bytes::from_static(&HALF_CLOSE)
}

/// The whole message that means nothing: a data frame without payload.
pub fn keepalive() -> Bytes {
    static EMPTY_BYTES: [u8; Header::MAX_LEN] = EMPTY.bytes;
    Bytes::from_static(&EMPTY_BYTES[..usize::from(EMPTY.len)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message;
    use crate::proto::openshell::{StreamHalfClose, TcpForwardFrame, tcp_forward_frame::Payload};

    fn generated(payload: Payload) -> Bytes {
        message::encode(&TcpForwardFrame {
            payload: Some(payload),
        })
    }

    #[test]
    fn a_header_and_its_payload_are_what_the_generated_code_writes() {
        for len in [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            MAX_FRAME - 1,
            MAX_FRAME,
            1 << 20,
        ] {
            let payload = vec![7; len];
            let ours = [&data_header(len)[..], &payload].concat();
            assert_eq!(ours, generated(Payload::Data(payload.into())), "{len}");
            assert_eq!(Bytes::from(data_header(len)), data_header(len)[..]);
        }
    }

    #[test]
    fn the_frames_that_never_differ() {
        assert_eq!(
            half_close(),
            generated(Payload::HalfClose(StreamHalfClose {}))
        );
        assert_eq!(keepalive(), generated(Payload::Data(Bytes::new())));
        assert_eq!(
            data_header(65_536)[..],
            [0, 0, 1, 0, 4, 0x12, 0x80, 0x80, 0x04]
        );
    }
}
