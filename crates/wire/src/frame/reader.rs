//! Bytes of a stream in, frames out; payload is passed on as it comes.

use bytes::{Buf, Bytes};
use prost::Message;
use tidegate_lifecycle::limits::MAX_FRAME;

use super::scan::{MAX_HEAD, Scan, scan};
use super::{FrameError, FrameLimit};
use crate::message::{self, Gather, PREFIX_LEN};

/// What a stream says next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// The first message's own bytes, for [`ForwardInit::parse`](super::ForwardInit::parse),
    /// [`RelayInit::parse`](super::RelayInit::parse) or [`PeerInit::parse`](super::PeerInit::parse).
    Init(Bytes),
    /// Payload: a slice of what was pushed, and perhaps a piece of what the peer sent as one frame.
    /// Empty only if the peer's frame was.
    Data(Bytes),
    /// FIN.
    HalfClose,
    /// A message without any field.
    Empty,
    /// A message without any field known here.
    Unknown,
}

/// Cuts the bytes of one direction of a stream into frames.
///
/// A data frame in the form that every protobuf library writes passes through undecoded and
/// uncopied, wherever the bytes are split. Everything else is gathered, within the limit, and
/// decoded; what protobuf allows is allowed, such as a frame that holds several payloads, of which
/// the last counts. A frame above the limit is refused before any byte of it is passed on.
///
/// After each [`push`](Self::push), call [`next`](Self::next) until it yields nothing.
#[derive(Debug)]
pub struct FrameReader {
    limit: FrameLimit,
    input: Bytes,
    state: State,
    oversize: u64,
}

#[derive(Debug)]
enum State {
    /// Before a message is recognised: the beginning of one that arrived in pieces.
    Head(Head),
    /// Inside the payload of a data frame.
    Data {
        left: usize,
    },
    /// Inside a message that must be decoded.
    Message(Gather),
    Failed(FrameError),
}

impl FrameReader {
    /// A reader at the beginning of a stream.
    pub fn new(limit: FrameLimit) -> Self {
        Self {
            limit,
            input: Bytes::new(),
            state: State::Head(Head::default()),
            oversize: 0,
        }
    }

    /// How many data frames above 64 KiB there were since this was asked last, from a peer that may
    /// send them.
    pub const fn take_oversize(&mut self) -> u64 {
        std::mem::replace(&mut self.oversize, 0)
    }

    /// Holds the frames that follow to another limit.
    pub fn set_limit(&mut self, limit: FrameLimit) {
        self.limit = limit;
    }

    /// How many of the bytes pushed have not come out yet: those of a message that is incomplete,
    /// and those behind it.
    pub fn buffered(&self) -> usize {
        let begun = match &self.state {
            State::Head(head) => head.len,
            State::Message(gather) => gather.len(),
            State::Data { .. } | State::Failed(_) => 0,
        };
        begun + self.input.len()
    }

    /// How much is here of a message that cannot be passed on before it is whole: never more than
    /// the largest message. Their sender needs credit for them although nobody has taken them.
    pub fn gathered(&self) -> usize {
        match &self.state {
            State::Message(gather) => gather.len(),
            State::Head(_) | State::Data { .. } | State::Failed(_) => 0,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: Bytes) {
        message::append(&mut self.input, bytes);
    }

    /// The next frame, or the next piece of one; none until more bytes are pushed.
    ///
    /// # Errors
    ///
    /// When the bytes are no frame within the limit; from then on always the same.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that ends is not what this is"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        self.advance()
            .inspect_err(|error| self.state = State::Failed(*error))
    }

    /// Whether the stream may end here without cutting a frame short.
    pub fn is_at_boundary(&self) -> bool {
        self.input.is_empty() && matches!(&self.state, State::Head(head) if head.len == 0)
    }

    /// What was pushed and has not been read, for a reader of other messages. Nothing is missing as
    /// long as the last thing that was read was a whole frame.
    pub(crate) fn into_rest(self) -> Bytes {
        let Self {
            state, mut input, ..
        } = self;
        match state {
            State::Head(head) if head.len > 0 => [&head.bytes[..head.len], &input].concat().into(),
            State::Head(_) | State::Data { .. } | State::Message(_) | State::Failed(_) => {
                input.split_off(0)
            }
        }
    }

    fn advance(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            match &mut self.state {
                State::Head(head) => match head.take(&mut self.input, self.limit)? {
                    None => return Ok(None),
                    Some(Start::Data(0)) => {
                        self.state = State::Head(Head::default());
                        return Ok(Some(Frame::Data(Bytes::new())));
                    }
                    Some(Start::Data(left)) => {
                        self.oversize += u64::from(left > MAX_FRAME);
                        self.state = State::Data { left };
                    }
                    Some(Start::Message(gather)) => self.state = State::Message(gather),
                },
                State::Data { .. } if self.input.is_empty() => return Ok(None),
                State::Data { left } => {
                    let piece = self.input.split_to(self.input.len().min(*left));
                    *left -= piece.len();
                    if *left == 0 {
                        self.state = State::Head(Head::default());
                    }
                    return Ok(Some(Frame::Data(piece)));
                }
                State::Message(gather) => {
                    let Some(message) = gather.take(&mut self.input) else {
                        return Ok(None);
                    };
                    self.state = State::Head(Head::default());
                    let frame = decode(message, self.limit)?;
                    if let Frame::Data(data) = &frame {
                        self.oversize += u64::from(data.len() > MAX_FRAME);
                    }
                    return Ok(Some(frame));
                }
                State::Failed(error) => return Err(*error),
            }
        }
    }
}

/// How a message is read once its beginning is known.
enum Start {
    Data(usize),
    Message(Gather),
}

/// The beginning of a message, as far as it arrived without the rest.
#[derive(Debug, Default)]
struct Head {
    bytes: [u8; MAX_HEAD],
    len: usize,
}

impl Head {
    /// Takes what precedes the payload, or the whole message, out of `input`.
    fn take(&mut self, input: &mut Bytes, limit: FrameLimit) -> Result<Option<Start>, FrameError> {
        if self.len == 0 {
            match scan(input, limit)? {
                Scan::Data { header, payload } => {
                    input.advance(header);
                    return Ok(Some(Start::Data(payload)));
                }
                Scan::Other { len } => {
                    input.advance(PREFIX_LEN);
                    return Ok(Some(Start::Message(Gather::new(len, &[]))));
                }
                Scan::More => {}
            }
        }
        while input.has_remaining() {
            self.bytes[self.len] = input.get_u8();
            self.len += 1;
            let head = &self.bytes[..self.len];
            match scan(head, limit)? {
                Scan::More => {}
                Scan::Data { payload, .. } => return Ok(Some(Start::Data(payload))),
                Scan::Other { len } => {
                    return Ok(Some(Start::Message(Gather::new(len, &head[PREFIX_LEN..]))));
                }
            }
        }
        Ok(None)
    }
}

/// Any frame message. Its messages are read as bytes, which are the same on the wire.
#[derive(Clone, PartialEq, Message)]
struct AnyFrame {
    #[prost(oneof = "Payload", tags = "1, 2, 3")]
    payload: Option<Payload>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Payload {
    #[prost(bytes = "bytes", tag = "1")]
    Init(Bytes),
    #[prost(bytes = "bytes", tag = "2")]
    Data(Bytes),
    #[prost(bytes = "bytes", tag = "3")]
    HalfClose(Bytes),
}

fn decode(message: Bytes, limit: FrameLimit) -> Result<Frame, FrameError> {
    if message.is_empty() {
        return Ok(Frame::Empty);
    }
    let frame = AnyFrame::decode(message).map_err(|_| FrameError::Malformed)?;
    match frame.payload {
        Some(Payload::Init(init)) => Ok(Frame::Init(init)),
        Some(Payload::Data(data)) => limit.check_payload(data.len()).map(|()| Frame::Data(data)),
        Some(Payload::HalfClose(_)) => Ok(Frame::HalfClose),
        None => Ok(Frame::Unknown),
    }
}

#[cfg(test)]
mod tests;
