//! The end of a command's tunnel that is in a program's own hands: the runner's, or a client's.
//!
//! One half sits in the tunnel, the other is a [`PipeSender`] and a [`PipeReceiver`], which may
//! belong to different tasks. Nothing grows without bound between them: a message counts as taken
//! when the receiver took it, and the sender waits while [`BUDGET`] bytes of its own are unread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::{End as StreamEnd, Origin, Reason};
use tidegate_lifecycle::exec::KillScope;
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::Buffered;
use tidegate_wire::exec::Item;

use super::items::Items;
use crate::cargo::{Cargo as _, Store as _};
use crate::end::{End, Opened, Read};

/// The payload bytes of the sender that may wait for the tunnel.
const BUDGET: usize = 256 * 1024;
/// The messages of the sender that may wait for the tunnel, whatever they carry.
const COUNT: usize = 1024;

/// The half of a pipe that sits in a tunnel.
#[derive(Debug)]
pub struct ExecPipe {
    shared: Arc<Shared>,
    announced: bool,
}

/// Says things to the tunnel. Dropping it ends the stream, unless an exit was the last thing said.
#[derive(Debug)]
pub struct PipeSender {
    shared: Arc<Shared>,
}

/// Hears what comes from the tunnel. Dropped, what comes is thrown away.
#[derive(Debug)]
pub struct PipeReceiver {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    tunnel: AtomicWaker,
    sender: AtomicWaker,
    receiver: AtomicWaker,
}

#[derive(Debug)]
struct State {
    /// From the tunnel to the receiver.
    incoming: Items,
    /// Nobody receives any more.
    deaf: bool,
    taken: usize,
    /// From the sender to the tunnel.
    outgoing: Items,
    /// The last thing that this side says was said.
    said_last: bool,
    /// Why this side ends the stream, once it does.
    gone: Option<StreamEnd>,
    /// What it means that the sender was dropped.
    dropped: StreamEnd,
    /// How the tunnel ended the stream.
    ended: Option<Result<(), Box<StreamEnd>>>,
}

/// A pipe whose bytes count in `total`. `dropped` is what it means for the stream when its sender
/// goes away with something left to say.
pub fn exec_pipe(
    dropped: StreamEnd,
    total: &Arc<Buffered>,
) -> (ExecPipe, PipeSender, PipeReceiver) {
    let state = State {
        incoming: Items::new(Arc::clone(total)),
        deaf: false,
        taken: 0,
        outgoing: Items::new(Arc::clone(total)),
        said_last: false,
        gone: None,
        dropped,
        ended: None,
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        tunnel: AtomicWaker::new(),
        sender: AtomicWaker::new(),
        receiver: AtomicWaker::new(),
    });
    let end = ExecPipe {
        shared: Arc::clone(&shared),
        announced: false,
    };
    let sender = PipeSender {
        shared: Arc::clone(&shared),
    };
    (end, sender, PipeReceiver { shared })
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the stream for the program, the first time it is said.
    fn finish(&self, outcome: Result<(), Box<StreamEnd>>) {
        let mut state = self.lock();
        if outcome.is_err() && state.ended.is_none() {
            state.incoming.clear();
        }
        state.ended.get_or_insert(outcome);
        drop(state);
        self.receiver.wake();
        self.sender.wake();
    }

    fn deliver(&self, item: Item) {
        let mut state = self.lock();
        if state.deaf {
            state.taken += item.weight();
        } else {
            state.incoming.push(item);
        }
        drop(state);
        self.receiver.wake();
    }
}

impl PipeSender {
    /// Ready when something may be sent.
    ///
    /// # Errors
    ///
    /// How the stream ended, when it has ended badly. A stream that has ended well takes things and
    /// drops them.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamEnd>> {
        self.shared.sender.register(cx.waker());
        let state = self.shared.lock();
        match &state.ended {
            Some(Err(end)) => Poll::Ready(Err((**end).clone())),
            Some(Ok(())) => Poll::Ready(Ok(())),
            None if state.has_room() => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }

    /// Sends `item`, for which there is room: see [`PipeSender::poll_ready`].
    pub fn send_now(&mut self, item: Item) {
        let mut state = self.shared.lock();
        if state.ended.is_none() && !state.said_last {
            state.said_last = item.is_last();
            state.outgoing.push(item);
        }
        drop(state);
        self.shared.tunnel.wake();
    }

    /// Sends `item` when there is room for it.
    ///
    /// # Errors
    ///
    /// As [`PipeSender::poll_ready`].
    ///
    /// # Cancel safety
    ///
    /// When the future is dropped, the item is dropped with it and was not sent.
    pub async fn send(&mut self, item: Item) -> Result<(), StreamEnd> {
        std::future::poll_fn(|cx| self.poll_ready(cx)).await?;
        self.send_now(item);
        Ok(())
    }

    /// Ends the stream with `end`, as this side of it.
    pub fn fail(&mut self, end: StreamEnd) {
        self.shared.lock().gone.get_or_insert(end);
        self.shared.tunnel.wake();
    }
}

impl Drop for PipeSender {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        if !state.said_last && state.gone.is_none() {
            state.gone = Some(state.dropped.clone());
        }
        drop(state);
        self.shared.tunnel.wake();
    }
}

impl PipeReceiver {
    /// The next thing that was said; none when the stream has ended well.
    ///
    /// # Errors
    ///
    /// How the stream ended, when it has ended badly. What was not received before is lost.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Item>, StreamEnd>> {
        self.shared.receiver.register(cx.waker());
        let mut state = self.shared.lock();
        if let Some(item) = state.incoming.pop() {
            state.taken += item.weight();
            drop(state);
            self.shared.tunnel.wake();
            return Poll::Ready(Ok(Some(item)));
        }
        match &state.ended {
            Some(Ok(())) => Poll::Ready(Ok(None)),
            Some(Err(end)) => Poll::Ready(Err((**end).clone())),
            None => Poll::Pending,
        }
    }

    /// What was said already, if anything was; as [`PipeReceiver::poll_recv`].
    ///
    /// # Errors
    ///
    /// As [`PipeReceiver::poll_recv`].
    pub fn try_recv(&mut self) -> Option<Result<Option<Item>, StreamEnd>> {
        let mut cx = Context::from_waker(std::task::Waker::noop());
        match self.poll_recv(&mut cx) {
            Poll::Ready(received) => Some(received),
            Poll::Pending => None,
        }
    }

    /// A signal or a resize, ahead of what was said before it: for whoever cannot take that yet.
    pub fn poll_urgent(&mut self, cx: &mut Context<'_>) -> Poll<Item> {
        self.shared.receiver.register(cx.waker());
        let urgent = self.shared.lock().incoming.pop_urgent();
        let Some(item) = urgent else {
            return Poll::Pending;
        };
        self.shared.tunnel.wake();
        Poll::Ready(item)
    }

    /// As [`PipeReceiver::poll_recv`].
    ///
    /// # Errors
    ///
    /// As [`PipeReceiver::poll_recv`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub async fn recv(&mut self) -> Result<Option<Item>, StreamEnd> {
        std::future::poll_fn(|cx| self.poll_recv(cx)).await
    }
}

impl Drop for PipeReceiver {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.deaf = true;
        state.taken += state.incoming.weight();
        state.incoming.clear();
        drop(state);
        self.shared.tunnel.wake();
    }
}

impl State {
    fn has_room(&self) -> bool {
        self.outgoing.weight() < BUDGET && self.outgoing.count() < COUNT
    }
}

impl End for ExecPipe {
    type Item = Item;

    fn poll_read(&mut self, room: bool, cx: &mut Context<'_>) -> Poll<Read<Item>> {
        if !std::mem::replace(&mut self.announced, true) {
            return Poll::Ready(Read::Opened(Opened::on(Capabilities::EXEC)));
        }
        self.shared.tunnel.register(cx.waker());
        let mut state = self.shared.lock();
        if let Some(end) = state.gone.take() {
            return Poll::Ready(Read::Ended(Rank::Typed, end));
        }
        let item = if room { state.outgoing.pop() } else { None };
        drop(state);
        match item {
            Some(item) => {
                self.shared.sender.wake();
                Poll::Ready(Read::Data(item))
            }
            None => Poll::Pending,
        }
    }

    fn queue(&mut self, item: Item) {
        self.shared.deliver(item);
    }

    fn command(&mut self, write: Write) {
        match write {
            Write::FinFrame => self.shared.deliver(Item::StdinFin),
            Write::EndStream | Write::Ok | Write::Close => self.shared.finish(Ok(())),
            Write::Status(end) | Write::Reset(end) => self.shared.finish(Err(end)),
            Write::Keepalive => {}
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), (Rank, StreamEnd)>> {
        ready!(self.poll_room(cx));
        Poll::Ready(Ok(()))
    }

    fn taken(&mut self) -> usize {
        std::mem::take(&mut self.shared.lock().taken)
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.tunnel.register(cx.waker());
        if self.shared.lock().incoming.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn waiting(&self) -> usize {
        self.shared.lock().incoming.weight()
    }

    fn credit(&mut self, _bytes: usize) {}

    fn path_opened(&mut self, _opened: &Opened) {
        self.shared.deliver(Item::Started(Ok(KillScope::None)));
    }

    fn poll_gone(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn cut(&mut self) {}
}

impl Drop for ExecPipe {
    fn drop(&mut self) {
        let message = "the stream was dropped before it had ended";
        let end = StreamEnd::new(Origin::Client, Reason::TransportLost, message);
        self.shared.finish(Err(Box::new(end)));
    }
}
