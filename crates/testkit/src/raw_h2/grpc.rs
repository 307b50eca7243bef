//! gRPC's framing of messages: a flag, four bytes of length, the message.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

const PREFIX: usize = 5;

/// Encodes and frames a message.
pub fn frame(message: &impl Message) -> Bytes {
    frame_bytes(0, &message.encode_to_vec())
}

/// Frames any bytes behind any flag; 1 claims compression.
pub fn frame_bytes(flag: u8, message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX + message.len());
    framed.put_u8(flag);
    framed.put_u32(u32::try_from(message.len()).expect("a test's message is small"));
    framed.put_slice(message);
    framed.freeze()
}

/// Puts messages together from the pieces in which they arrive.
#[derive(Debug, Default)]
pub struct MessageReader(BytesMut);

impl MessageReader {
    /// Takes the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.0.extend_from_slice(piece);
    }

    /// Returns the next complete message, without its prefix.
    pub fn pop(&mut self) -> Option<Bytes> {
        let length = self.0.get(1..PREFIX)?.get_u32() as usize;
        if self.0.len() < PREFIX + length {
            return None;
        }
        self.0.advance(PREFIX);
        Some(self.0.split_to(length).freeze())
    }

    /// Lets `message`, which was popped, be the next one again.
    pub fn put_back(&mut self, message: &[u8]) {
        let rest = self.0.split();
        self.0.extend_from_slice(&frame_bytes(0, message));
        self.0.unsplit(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_any_split() {
        let framed = [
            frame_bytes(0, b"one"),
            frame_bytes(0, b""),
            frame_bytes(1, b"three"),
        ]
        .concat();
        let mut reader = MessageReader::default();
        let mut messages = Vec::new();
        for byte in framed {
            reader.push(&[byte]);
            messages.extend(std::iter::from_fn(|| reader.pop()));
        }
        assert_eq!(messages, [&b"one"[..], b"", b"three"]);
    }

    #[test]
    fn what_was_put_back_comes_again_before_the_rest() {
        let mut reader = MessageReader::default();
        reader.push(&[frame_bytes(0, b"one"), frame_bytes(0, b"two")].concat());
        let one = reader.pop().unwrap();
        reader.put_back(&one);
        assert_eq!(reader.pop().unwrap(), "one");
        assert_eq!(reader.pop().unwrap(), "two");
        assert_eq!(reader.pop(), None);
    }
}
