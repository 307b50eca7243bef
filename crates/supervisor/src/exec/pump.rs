//! Hands over between a command that runs and its pipe.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tidegate_bridge::{PipeReceiver, PipeSender};
use tidegate_wire::exec::Item;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::runner::{Control, Event, Events, Running, Stdin, Why};

/// How much is handed over before others on the thread have a turn.
const TURN: usize = 64;

/// Moves what is said to a command and by it, both at the same time, until it has exited or its
/// stream has ended. In the latter case dropping it ends the command.
///
/// Nothing is kept here but what the command is just being given: who is slow, slows the other.
pub(super) struct Pump {
    input: Input,
    events: Events,
    sender: PipeSender,
    control: Control,
    stop: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// The way to the command.
struct Input {
    receiver: PipeReceiver,
    stdin: Stdin,
    /// What stdin has not taken yet.
    rest: Bytes,
    finishing: bool,
    over: bool,
}

impl Pump {
    pub(super) fn new(
        running: Running,
        sender: PipeSender,
        receiver: PipeReceiver,
        stop: WaitForCancellationFutureOwned,
    ) -> Self {
        let (control, stdin, events) = running.split();
        let input = Input {
            receiver,
            stdin,
            rest: Bytes::new(),
            finishing: false,
            over: false,
        };
        Self {
            input,
            events,
            sender,
            control,
            stop: Some(Box::pin(stop)),
        }
    }

    /// With what was said to the command before it ran.
    pub(super) fn beginning_with(mut self, first: Option<Item>) -> Self {
        if let Some(item) = first {
            self.input.take(item, &self.control);
        }
        self
    }

    fn poll_stop(&mut self, cx: &mut Context<'_>) {
        if let Some(stop) = &mut self.stop
            && stop.as_mut().poll(cx).is_ready()
        {
            self.stop = None;
            self.control.kill(Why::Cancelled);
        }
    }

    /// Ready when there is nothing more to say, or nobody to say it to.
    fn poll_output(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..TURN {
            // Asked first, whatever there is to say: so it is known when the stream has ended.
            if ready!(self.sender.poll_ready(cx)).is_err() {
                return Poll::Ready(());
            }
            match ready!(self.events.poll_next(cx)) {
                Some(Event::Output {
                    output,
                    data,
                    sequence,
                    order,
                }) => self.sender.send_now(Item::Output {
                    output,
                    data,
                    sequence,
                    order,
                }),
                Some(Event::Exit(exit)) => {
                    self.sender.send_now(Item::Exit(Box::new(exit)));
                    return Poll::Ready(());
                }
                None => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Future for Pump {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let pump = &mut *self;
        pump.poll_stop(cx);
        let _ = pump.input.poll(&pump.control, cx);
        pump.poll_output(cx)
    }
}

impl Input {
    /// Ready when nothing more comes.
    fn poll(&mut self, control: &Control, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.stdin.poll_write(cx, &mut self.rest).is_pending() {
                // A command that does not read can be interrupted all the same.
                while let Poll::Ready(item) = self.receiver.poll_urgent(cx) {
                    self.take(item, control);
                }
                return Poll::Pending;
            }
            if self.finishing {
                ready!(self.stdin.poll_close(cx));
                self.finishing = false;
            }
            if self.over {
                return Poll::Ready(());
            }
            match ready!(self.receiver.poll_recv(cx)) {
                Ok(Some(item)) => self.take(item, control),
                Ok(None) | Err(_) => self.over = true,
            }
        }
    }

    fn take(&mut self, item: Item, control: &Control) {
        match item {
            Item::Stdin(data) => self.rest = data,
            Item::StdinFin => self.finishing = true,
            Item::Resize(size) => {
                if let Err(error) = control.resize(size) {
                    tracing::debug!(%error, "a terminal was not resized");
                }
            }
            Item::Signal(number) => {
                if let Err(error) = control.signal(number) {
                    tracing::debug!(number, %error, "a signal was not sent");
                }
            }
            // The tunnel lets none of these through.
            Item::Start(_)
            | Item::Started(_)
            | Item::Output { .. }
            | Item::Exit(_)
            | Item::Empty
            | Item::Unknown => {}
        }
    }
}
