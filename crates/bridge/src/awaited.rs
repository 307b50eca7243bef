//! The upstream end of a stream whose path is still being opened.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tidegate_lifecycle::cause::End as StreamEnd;
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::Buffered;

use crate::end::{End, Opened, Read};
use crate::frame::FrameEnd;
use crate::queue::Queue;

/// What opening a path leads to: an end and what is known of the path, or why there is none.
pub type Opening = Pin<Box<dyn Future<Output = Result<(FrameEnd, Opened), StreamEnd>> + Send>>;

/// An end that holds what the client sends until its path is open, or cannot be opened.
///
/// Dropping it, or an abort, drops the future that opens the path: whoever waits for that is told
/// by the future's own guards.
pub struct AwaitedEnd {
    state: State,
}

enum State {
    Opening(Opening, Queue),
    Open(Box<FrameEnd>),
    Gone,
}

impl std::fmt::Debug for AwaitedEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.state {
            State::Opening(..) => "AwaitedEnd(opening)",
            State::Open(_) => "AwaitedEnd(open)",
            State::Gone => "AwaitedEnd(gone)",
        })
    }
}

impl AwaitedEnd {
    /// Waits for `opening`.
    pub fn new(opening: Opening, total: &Arc<Buffered>) -> Self {
        Self {
            state: State::Opening(opening, Queue::new(Arc::clone(total))),
        }
    }

    const fn open(&mut self) -> Option<&mut FrameEnd> {
        match &mut self.state {
            State::Open(end) => Some(end),
            State::Opening(..) | State::Gone => None,
        }
    }
}

impl End for AwaitedEnd {
    fn poll_read(&mut self, room: bool, cx: &mut Context<'_>) -> Poll<Read> {
        let opened = match &mut self.state {
            State::Opening(opening, _) => ready!(opening.as_mut().poll(cx)),
            State::Open(end) => return end.poll_read(room, cx),
            State::Gone => return Poll::Pending,
        };
        match (opened, std::mem::replace(&mut self.state, State::Gone)) {
            (Ok((mut end, opened)), State::Opening(_, mut queue)) => {
                while let Some(piece) = queue.take(usize::MAX) {
                    end.queue(piece);
                }
                end.path_opened(&opened);
                self.state = State::Open(Box::new(end));
                Poll::Ready(Read::Opened(opened))
            }
            (Ok(_), State::Open(_) | State::Gone) => Poll::Pending,
            (Err(end), _) => Poll::Ready(Read::Ended(Rank::Typed, end)),
        }
    }

    fn queue(&mut self, data: Bytes) {
        match &mut self.state {
            State::Opening(_, queue) => queue.push(data),
            State::Open(end) => end.queue(data),
            State::Gone => {}
        }
    }

    fn command(&mut self, write: Write) {
        match &mut self.state {
            State::Open(end) => end.command(write),
            State::Opening(..) => self.state = State::Gone,
            State::Gone => {}
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), (Rank, StreamEnd)>> {
        match &mut self.state {
            State::Open(end) => end.poll_flush(cx),
            State::Opening(_, queue) if !queue.is_empty() => Poll::Pending,
            State::Opening(..) | State::Gone => Poll::Ready(Ok(())),
        }
    }

    fn taken(&mut self) -> usize {
        self.open().map_or(0, FrameEnd::taken)
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.state {
            State::Opening(_, queue) if !queue.is_empty() => Poll::Pending,
            State::Open(end) => end.poll_room(cx),
            State::Opening(..) | State::Gone => Poll::Ready(()),
        }
    }

    fn waiting(&self) -> usize {
        match &self.state {
            State::Opening(_, queue) => queue.len(),
            State::Open(end) => end.waiting(),
            State::Gone => 0,
        }
    }

    fn reads_ahead(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    fn credit(&mut self, bytes: usize) {
        if let Some(end) = self.open() {
            end.credit(bytes);
        }
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.open().map_or(Poll::Ready(()), |end| end.poll_gone(cx))
    }

    fn cut(&mut self) {
        if let Some(end) = self.open() {
            end.cut();
        }
    }
}
