//! gRPC's framing of a message: one byte that says "not compressed", four that say how long.

use bytes::{BufMut, Bytes, BytesMut};
use thiserror::Error;
use tidegate_lifecycle::limits::MAX_LEGACY_MESSAGE;

/// How many bytes precede each message.
pub const PREFIX_LEN: usize = 5;

/// What is wrong with the bytes of a stream. Nothing can be read from it afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A frame is larger than the peer may send.
    #[error("a frame of {len} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// How large it is: its payload where that is known, else the whole message.
        len: usize,
        /// How large it may be.
        limit: usize,
    },
    /// A message is compressed, which was never negotiated.
    #[error("a message is compressed, which was not negotiated")]
    Compressed,
    /// The bytes are neither a gRPC message nor protobuf inside one.
    #[error("malformed message")]
    Malformed,
}

/// The message with its prefix, ready to be sent.
///
/// # Panics
///
/// When the message has 4 GiB or more, which nothing here can build.
pub fn frame(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(PREFIX_LEN + message.len());
    put_prefix(&mut framed, message.len());
    framed.put_slice(message);
    framed.freeze()
}

/// Encodes a message with its prefix, ready to be sent.
pub(crate) fn encode(message: &impl prost::Message) -> Bytes {
    let len = message.encoded_len();
    let mut framed = BytesMut::with_capacity(PREFIX_LEN + len);
    put_prefix(&mut framed, len);
    message.encode_raw(&mut framed);
    framed.freeze()
}

fn put_prefix(framed: &mut BytesMut, len: usize) {
    framed.put_u8(0);
    framed.put_u32(u32::try_from(len).expect("a message fits in memory many times over"));
}

/// The length that a prefix announces.
pub(crate) fn announced(prefix: [u8; PREFIX_LEN]) -> Result<usize, FrameError> {
    let [compressed, len @ ..] = prefix;
    match compressed {
        0 => usize::try_from(u32::from_be_bytes(len)).map_err(|_| FrameError::Malformed),
        1 => Err(FrameError::Compressed),
        _ => Err(FrameError::Malformed),
    }
}

/// Cuts a stream of bytes into messages of at most 1 MiB.
///
/// Holds the bytes of one message and what was pushed but not yet read. After each
/// [`push`](Self::push), call [`next`](Self::next) until it yields nothing.
#[derive(Debug, Default)]
pub struct MessageReader {
    input: Bytes,
    state: State,
}

#[derive(Debug)]
enum State {
    Prefix { bytes: [u8; PREFIX_LEN], len: usize },
    Body(Gather),
    Failed(FrameError),
}

impl Default for State {
    fn default() -> Self {
        Self::Prefix {
            bytes: [0; PREFIX_LEN],
            len: 0,
        }
    }
}

impl MessageReader {
    /// A reader at the beginning of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: Bytes) {
        append(&mut self.input, bytes);
    }

    /// The next whole message without its prefix; none until more bytes are pushed.
    ///
    /// # Errors
    ///
    /// When the bytes are no gRPC message of at most 1 MiB; from then on always the same.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that ends is not what this is"
    )]
    pub fn next(&mut self) -> Result<Option<Bytes>, FrameError> {
        loop {
            match &mut self.state {
                State::Prefix { bytes, len } => {
                    let more = self.input.split_to(self.input.len().min(PREFIX_LEN - *len));
                    bytes[*len..*len + more.len()].copy_from_slice(&more);
                    *len += more.len();
                    if *len < PREFIX_LEN {
                        return Ok(None);
                    }
                    self.state = begin(*bytes);
                }
                State::Body(gather) => {
                    let Some(message) = gather.take(&mut self.input) else {
                        return Ok(None);
                    };
                    self.state = State::default();
                    return Ok(Some(message));
                }
                State::Failed(error) => return Err(*error),
            }
        }
    }

    /// How many of the bytes pushed have not come out yet: those of a message that is incomplete, and
    /// those behind it.
    pub fn buffered(&self) -> usize {
        let begun = match &self.state {
            State::Prefix { len, .. } => *len,
            State::Body(gather) => gather.len(),
            State::Failed(_) => 0,
        };
        begun + self.input.len()
    }

    /// Whether the stream may end here without cutting a message short.
    pub fn is_at_boundary(&self) -> bool {
        self.input.is_empty() && matches!(self.state, State::Prefix { len: 0, .. })
    }
}

fn begin(prefix: [u8; PREFIX_LEN]) -> State {
    match announced(prefix) {
        Ok(len) if len <= MAX_LEGACY_MESSAGE => State::Body(Gather::new(len, &[])),
        Ok(len) => State::Failed(FrameError::TooLarge {
            len,
            limit: MAX_LEGACY_MESSAGE,
        }),
        Err(error) => State::Failed(error),
    }
}

/// Appends to what is not read yet, which costs a copy only if there is something.
pub(crate) fn append(input: &mut Bytes, bytes: Bytes) {
    if input.is_empty() {
        *input = bytes;
    } else {
        *input = [&input[..], &bytes].concat().into();
    }
}

/// Collects one message. It grows with what arrives, not with what was announced.
#[derive(Debug)]
pub(crate) struct Gather {
    len: usize,
    have: BytesMut,
}

impl Gather {
    /// A message of `len` bytes, whose beginning is there.
    pub(crate) fn new(len: usize, beginning: &[u8]) -> Self {
        Self {
            len,
            have: BytesMut::from(beginning),
        }
    }

    /// How much of the message is there.
    pub(crate) fn len(&self) -> usize {
        self.have.len()
    }

    /// Takes what belongs to the message out of `input`; the message, when it is whole. One that
    /// arrived in one piece is not copied.
    pub(crate) fn take(&mut self, input: &mut Bytes) -> Option<Bytes> {
        let missing = self.len - self.have.len();
        if self.have.is_empty() && input.len() >= missing {
            return Some(input.split_to(missing));
        }
        self.have
            .extend_from_slice(&input.split_to(input.len().min(missing)));
        (self.have.len() == self.len).then(|| self.have.split().freeze())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(reader: &mut MessageReader) -> Vec<Bytes> {
        std::iter::from_fn(|| reader.next().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn messages_survive_any_split(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8),
            step in 1usize..20,
        ) {
            let stream: Vec<u8> = messages.iter().flat_map(|message| frame(message)).collect();
            let mut reader = MessageReader::new();
            let mut seen = Vec::new();
            for piece in stream.chunks(step) {
                reader.push(Bytes::copy_from_slice(piece));
                seen.extend(read(&mut reader));
            }
            prop_assert_eq!(seen, messages);
            prop_assert!(reader.is_at_boundary());
        }
    }

    #[test]
    fn bytes_pushed_early_are_kept() {
        let mut reader = MessageReader::new();
        reader.push(frame(b"one"));
        reader.push(frame(b"two"));
        assert_eq!(read(&mut reader), ["one", "two"]);
    }

    #[test]
    fn a_message_is_refused_before_it_is_held() {
        let check = |bytes: &'static [u8], error| {
            let mut reader = MessageReader::new();
            reader.push(Bytes::from_static(bytes));
            assert_eq!(reader.next(), Err(error));
            reader.push(frame(b"fine"));
            assert_eq!(reader.next(), Err(error), "and stays refused");
        };
        check(
            &[0, 0, 16, 0, 1],
            FrameError::TooLarge {
                len: 1_048_577,
                limit: 1_048_576,
            },
        );
        check(&[1, 0, 0, 0, 0], FrameError::Compressed);
        check(&[2, 0, 0, 0, 0], FrameError::Malformed);
    }

    #[test]
    fn a_stream_that_ends_inside_a_message_is_noticed() {
        let mut reader = MessageReader::new();
        reader.push(frame(b"abc").slice(..7));
        assert_eq!(reader.next(), Ok(None));
        assert!(!reader.is_at_boundary());
    }
}
