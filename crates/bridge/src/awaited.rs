//! The upstream end of a stream whose path is still being opened.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tidegate_lifecycle::cause::End as StreamEnd;
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::Buffered;

use crate::cargo::{Cargo, Store as _};
use crate::end::{End, Opened, Read};
use crate::frame::RpcEnd;

/// What opening a path leads to: an end and what is known of the path, or why there is none.
pub type Opening<I = Bytes> =
    Pin<Box<dyn Future<Output = Result<(RpcEnd<I>, Opened), StreamEnd>> + Send>>;

/// An end that holds what the client sends until its path is open, or cannot be opened.
///
/// Dropping it, or an abort, drops the future that opens the path: whoever waits for that is told
/// by the future's own guards.
pub struct Awaited<I: Cargo> {
    state: State<I>,
}

/// An end that is being opened for bytes.
pub type AwaitedEnd = Awaited<Bytes>;

enum State<I: Cargo> {
    Opening(Opening<I>, I::Store),
    Open(Box<RpcEnd<I>>),
    Gone,
}

impl<I: Cargo> std::fmt::Debug for Awaited<I> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match &self.state {
            State::Opening(..) => "AwaitedEnd(opening)",
            State::Open(_) => "AwaitedEnd(open)",
            State::Gone => "AwaitedEnd(gone)",
        })
    }
}

impl<I: Cargo> Awaited<I> {
    /// Waits for `opening`.
    pub fn new(opening: Opening<I>, total: &Arc<Buffered>) -> Self {
        Self {
            state: State::Opening(opening, I::store(total)),
        }
    }

    const fn open(&mut self) -> Option<&mut RpcEnd<I>> {
        match &mut self.state {
            State::Open(end) => Some(end),
            State::Opening(..) | State::Gone => None,
        }
    }
}

impl<I: Cargo> End for Awaited<I> {
    type Item = I;

    fn poll_read(&mut self, room: bool, cx: &mut Context<'_>) -> Poll<Read<I>> {
        let opened = match &mut self.state {
            State::Opening(opening, _) => ready!(opening.as_mut().poll(cx)),
            State::Open(end) => return end.poll_read(room, cx),
            State::Gone => return Poll::Pending,
        };
        match (opened, std::mem::replace(&mut self.state, State::Gone)) {
            (Ok((mut end, opened)), State::Opening(_, mut queue)) => {
                while let Some(item) = queue.pop() {
                    end.queue(item);
                }
                end.path_opened(&opened);
                self.state = State::Open(Box::new(end));
                Poll::Ready(Read::Opened(opened))
            }
            (Ok(_), State::Open(_) | State::Gone) => Poll::Pending,
            (Err(end), _) => Poll::Ready(Read::Ended(Rank::Typed, end)),
        }
    }

    fn queue(&mut self, item: I) {
        match &mut self.state {
            State::Opening(_, queue) => queue.push(item),
            State::Open(end) => end.queue(item),
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
        self.open().map_or(0, RpcEnd::taken)
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
            State::Opening(_, queue) => queue.weight(),
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
