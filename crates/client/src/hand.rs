//! The end of a tunnel that is the caller's own hands.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tidegate_bridge::{End, Opened, Queue, Read};
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::End as StreamEnd;
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::Buffered;

/// Bytes that wait here between the tunnel and whoever calls.
#[derive(Debug)]
pub(crate) struct Hand {
    /// Written by the caller, not yet read by the tunnel.
    outgoing: Option<Bytes>,
    finished: bool,
    said_fin: bool,
    announced: bool,
    /// Written by the tunnel, not yet read by the caller.
    incoming: Queue,
    complete: bool,
    taken: usize,
}

impl Hand {
    pub(crate) fn new(total: &Arc<Buffered>) -> Self {
        Self {
            outgoing: None,
            finished: false,
            said_fin: false,
            announced: false,
            incoming: Queue::new(Arc::clone(total)),
            complete: false,
            taken: 0,
        }
    }

    /// Gives bytes to the tunnel. Says whether there was room.
    pub(crate) fn give(&mut self, data: &[u8]) -> bool {
        let room = self.outgoing.is_none() && !self.finished;
        if room {
            self.outgoing = Some(Bytes::copy_from_slice(data));
        }
        room
    }

    /// Whether everything given was read by the tunnel.
    pub(crate) const fn is_idle(&self) -> bool {
        self.outgoing.is_none() && self.finished == self.said_fin
    }

    pub(crate) const fn finish(&mut self) {
        self.finished = true;
    }

    /// Takes what has arrived, at most `max` bytes.
    pub(crate) fn take(&mut self, max: usize) -> Option<Bytes> {
        let piece = self.incoming.take(max)?;
        self.taken += piece.len();
        Some(piece)
    }

    /// Whether the peer's FIN came and everything before it was taken.
    pub(crate) const fn is_complete(&self) -> bool {
        self.complete && self.incoming.is_empty()
    }
}

impl End for Hand {
    type Item = Bytes;

    fn poll_read(&mut self, room: bool, _cx: &mut Context<'_>) -> Poll<Read> {
        if !std::mem::replace(&mut self.announced, true) {
            return Poll::Ready(Read::Opened(Opened::on(Capabilities::STREAM)));
        }
        if let Some(data) = self.outgoing.take_if(|_| room) {
            return Poll::Ready(Read::Data(data));
        }
        if self.outgoing.is_none() && self.finished && !self.said_fin {
            self.said_fin = true;
            return Poll::Ready(Read::End);
        }
        // Every call of the owner polls the tunnel: nobody else can bring more.
        Poll::Pending
    }

    fn queue(&mut self, data: Bytes) {
        self.incoming.push(data);
    }

    fn command(&mut self, write: Write) {
        match write {
            Write::EndStream => self.complete = true,
            Write::Reset(_) | Write::Status(_) => self.incoming.clear(),
            Write::FinFrame | Write::Ok | Write::Close | Write::Keepalive => {}
        }
    }

    fn poll_flush(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), (Rank, StreamEnd)>> {
        if self.incoming.is_empty() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }

    fn taken(&mut self) -> usize {
        std::mem::replace(&mut self.taken, 0)
    }

    fn poll_room(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        if self.incoming.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn waiting(&self) -> usize {
        self.incoming.len()
    }

    fn credit(&mut self, _bytes: usize) {}

    fn poll_gone(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn cut(&mut self) {}
}

/// Wakes both halves of a stream: the reader and the writer may be different tasks, and the tunnel
/// knows one waker.
#[derive(Debug, Default)]
pub(crate) struct Halves {
    reader: AtomicWaker,
    writer: AtomicWaker,
}

impl Halves {
    pub(crate) fn reads(self: &Arc<Self>, cx: &Context<'_>) -> Waker {
        self.reader.register(cx.waker());
        Waker::from(Arc::clone(self))
    }

    pub(crate) fn writes(self: &Arc<Self>, cx: &Context<'_>) -> Waker {
        self.writer.register(cx.waker());
        Waker::from(Arc::clone(self))
    }
}

impl Wake for Halves {
    fn wake(self: Arc<Self>) {
        self.reader.wake();
        self.writer.wake();
    }
}
