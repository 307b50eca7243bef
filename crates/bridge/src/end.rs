//! What a tunnel needs of each of its two ends.

use std::task::{Context, Poll};

use bytes::Bytes;
use tidegate_lifecycle::cause::{End as StreamEnd, Reason};
use tidegate_lifecycle::id::{SessionId, StreamId};
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::Rank;
use tidegate_lifecycle::{Capabilities, HalfClose};

/// What an end has to report.
#[derive(Debug)]
pub enum Read<I = Bytes> {
    /// The path beyond this end is open, and how FIN is written there is known.
    Opened(Opened),
    /// Something to carry: at least one byte, or a message.
    Data(I),
    /// A data frame without bytes.
    Empty,
    /// A half-close frame.
    FinFrame,
    /// The direction ended: END_STREAM, trailers with OK, end of file.
    End,
    /// An init on a stream that has had its own.
    Init,
    /// A frame without a known payload.
    Unknown,
    /// The neighbour broke a rule of framing.
    Violation(Reason, String),
    /// The neighbour ended the stream, or was lost.
    Ended(Rank, StreamEnd),
}

/// What is known once the path beyond an end is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// How FIN is written on the hop.
    pub half_close: HalfClose,
    /// What the whole path beyond can promise.
    pub path: Capabilities,
    /// The name that the gateway gave the stream, where the neighbour said it.
    pub stream: Option<StreamId>,
    /// The session that serves the stream, where that is known.
    pub session: Option<SessionId>,
    /// Whether the path leads through another gateway, which has answered a call of ours.
    pub by_owner: bool,
}

impl Opened {
    /// A hop that agreed on `agreed`, beyond which the path is this process's own.
    pub const fn on(agreed: Capabilities) -> Self {
        Self {
            half_close: agreed.half_close(),
            path: agreed,
            stream: None,
            session: None,
            by_owner: false,
        }
    }
}

/// One side of a tunnel. Every `poll_*` registers the task for what it waits for.
pub trait End {
    /// What it carries.
    type Item;

    /// Reads what comes next. `room` is what [`End::poll_room`] said of the other side; an end
    /// whose neighbour has no window of its own reads only then.
    fn poll_read(&mut self, room: bool, cx: &mut Context<'_>) -> Poll<Read<Self::Item>>;

    /// Takes something to be written.
    fn queue(&mut self, item: Self::Item);

    /// Takes something to be written behind the bytes queued before. An abort drops them.
    fn command(&mut self, write: Write);

    /// Writes what is queued. Ready when all of it was taken, by the kernel or by the peer's window;
    /// behind a FIN, when it has left this process.
    ///
    /// # Errors
    ///
    /// When the other side of this end does not take bytes any more.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), (Rank, StreamEnd)>>;

    /// How many payload bytes were taken since the last call.
    fn taken(&mut self) -> usize;

    /// Ready when bytes that are queued now would be taken soon: nothing waits, and it is this
    /// stream's turn.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// How many payload bytes wait to be taken.
    fn waiting(&self) -> usize;

    /// Whether reading goes on although the other side has not taken what was read: the neighbour
    /// has a window, and what it has sent is here already.
    fn reads_ahead(&self) -> bool {
        false
    }

    /// `bytes` payload bytes that this end had read were taken by the other side, or dropped.
    fn credit(&mut self, bytes: usize);

    /// The path beyond the other end is open: tell the neighbour who waits for it.
    fn path_opened(&mut self, _opened: &Opened) {}

    /// After the stream has ended: waits until nothing of it is left on this side.
    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()>;

    /// The time that [`End::poll_gone`] may take is over: cut what is left.
    fn cut(&mut self);
}
