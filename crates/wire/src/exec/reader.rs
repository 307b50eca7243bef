//! Bytes of a command's stream in, items out.

use std::collections::VecDeque;

use bytes::Bytes;
use tidegate_lifecycle::limits::MAX_FRAME;

use super::{Dialect, Direction, Item, decode};
use crate::frame::{FrameLimit, FrameReader};
use crate::message::{FrameError, MessageReader};

/// Cuts the bytes of one direction of a command's stream into items.
///
/// Messages are gathered, within 1 MiB, and decoded; their payload is not copied unless it arrived
/// in pieces. No item carries more than 64 KiB: a larger one from a peer that may send it comes in
/// several, and the stdin inside a start comes behind it.
///
/// After each [`push`](Self::push), call [`next`](Self::next) until it yields nothing.
#[derive(Debug)]
pub struct ItemReader {
    dialect: Dialect,
    direction: Direction,
    limit: FrameLimit,
    messages: MessageReader,
    /// The rest of an item that comes in several.
    pieces: VecDeque<Item>,
    oversize: u64,
    failed: Option<FrameError>,
}

/// What the first message of ExecSandboxInteractive is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum First {
    /// The start's own bytes, for [`ExecRequest::parse`](super::ExecRequest::parse).
    Start(Bytes),
    /// Not a start.
    Other,
}

impl ItemReader {
    /// A reader at the beginning of a stream.
    pub fn new(dialect: Dialect, direction: Direction, limit: FrameLimit) -> Self {
        Self {
            dialect,
            direction,
            limit,
            messages: MessageReader::new(),
            pieces: VecDeque::new(),
            oversize: 0,
            failed: None,
        }
    }

    /// A reader of what follows a relay's init, which `frames` has read and nothing else.
    pub fn behind(frames: FrameReader, direction: Direction, limit: FrameLimit) -> Self {
        let mut reader = Self::new(Dialect::Relay, direction, limit);
        reader.push(frames.into_rest());
        reader
    }

    /// How many items above 64 KiB there were since the last call, from a peer that may send them.
    pub const fn take_oversize(&mut self) -> u64 {
        std::mem::replace(&mut self.oversize, 0)
    }

    /// Holds the items that follow to another limit.
    pub fn set_limit(&mut self, limit: FrameLimit) {
        self.limit = limit;
    }

    /// How many of the bytes pushed have not come out yet: those of a message that is incomplete,
    /// those behind it, and the payload of an item that comes in several.
    pub fn buffered(&self) -> usize {
        let pieces: usize = self.pieces.iter().map(Item::weight).sum();
        pieces + self.messages.buffered()
    }

    /// How much is here of a message that cannot be passed on before it is whole: never more than
    /// the largest message. Its sender needs credit for it although nobody has taken it.
    pub fn gathered(&self) -> usize {
        self.messages.buffered()
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: Bytes) {
        self.messages.push(bytes);
    }

    /// The first message of a client's input, for whoever must know the sandbox; none until more
    /// bytes are pushed.
    ///
    /// # Errors
    ///
    /// When the bytes are no message within the limit; from then on always the same.
    pub fn first(&mut self) -> Result<Option<First>, FrameError> {
        let Some(message) = self.message()? else {
            return Ok(None);
        };
        let start = decode::start_of(message).map_err(|error| self.fail(error))?;
        Ok(Some(start.map_or(First::Other, First::Start)))
    }

    /// The request of ExecSandbox, for [`ExecRequest::parse`](super::ExecRequest::parse); none until
    /// more bytes are pushed.
    ///
    /// # Errors
    ///
    /// When the bytes are no message within the limit; from then on always the same.
    pub fn request(&mut self) -> Result<Option<Bytes>, FrameError> {
        self.message()
    }

    /// The next item; none until more bytes are pushed.
    ///
    /// # Errors
    ///
    /// When the bytes are no message within the limit; from then on always the same.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator that ends is not what this is"
    )]
    pub fn next(&mut self) -> Result<Option<Item>, FrameError> {
        if let Some(item) = self.pieces.pop_front() {
            return Ok(Some(item));
        }
        let Some(message) = self.message()? else {
            return Ok(None);
        };
        let item = self.read(message).map_err(|error| self.fail(error))?;
        let mut pieces = item.pieces();
        let first = pieces.next();
        self.pieces.extend(pieces);
        Ok(first)
    }

    /// Whether the stream may end here without cutting an item short.
    pub fn is_at_boundary(&self) -> bool {
        self.pieces.is_empty() && self.failed.is_none() && self.messages.is_at_boundary()
    }

    fn message(&mut self) -> Result<Option<Bytes>, FrameError> {
        match self.failed {
            Some(error) => Err(error),
            None => self.messages.next(),
        }
    }

    fn read(&mut self, message: Bytes) -> Result<Item, FrameError> {
        let item = decode::decode(message, self.dialect, self.direction)?;
        let weight = item.weight();
        self.limit.check_payload(weight)?;
        self.oversize += u64::from(weight > MAX_FRAME);
        Ok(item)
    }

    fn fail(&mut self, error: FrameError) -> FrameError {
        self.failed = Some(error);
        error
    }
}
