//! One task per stream: two ends, and the machine that tells them what to do.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tidegate_lifecycle::cause::{Cause, End as StreamEnd};
use tidegate_lifecycle::leg::Arrival;
use tidegate_lifecycle::relay::{Relay, Side};
use tokio::time::{Sleep, sleep_until};

use crate::cargo::Cargo;
use crate::end::{End, Opened, Read};
use crate::handle::{Handle, Note};
use crate::machine::{Machine, Taken};

/// How much is read from one side before the other is flushed: what one write takes at best.
const BATCH: usize = 256 * 1024;
/// How many rounds a busy tunnel makes before it lets others on its thread have a turn.
const TURN: usize = 16;

/// How a stream ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Why it ended, when it did not finish.
    pub end: Option<Arc<StreamEnd>>,
    /// Whose neighbour ended it, and so knows of it; unset when this hop did, or when it finished.
    pub ended_by: Option<Side>,
    /// Payload bytes that the upstream side took.
    pub bytes_up: u64,
    /// Payload bytes that the downstream side took.
    pub bytes_down: u64,
    /// From the making of the tunnel to its end.
    pub duration: Duration,
}

impl Outcome {
    /// The cause, for metrics and states.
    pub fn cause(&self) -> Cause {
        self.end.as_ref().map_or(Cause::Finished, |end| end.cause())
    }
}

/// Two ends and their machine: a [`Relay`] for bytes, an
/// [`Execution`](tidegate_lifecycle::exec::Execution) for the messages of a command.
///
/// [`Tunnel::run`] resolves when the stream has ended, [`Tunnel::linger`] when nothing of it is
/// left. Dropping a tunnel aborts: sockets and RPCs are reset.
#[derive(Debug)]
pub struct Tunnel<D, U, M = Relay> {
    downstream: D,
    upstream: U,
    machine: M,
    handle: Handle,
    timer: Option<Pin<Box<Sleep>>>,
    /// The path beyond the upstream end, until downstream is told that it is open.
    path: Option<Opened>,
    opened: Option<Opened>,
    born: Instant,
}

impl<I, D, U, M> Tunnel<D, U, M>
where
    I: Cargo,
    D: End<Item = I>,
    U: End<Item = I>,
    M: Machine<Item = I>,
{
    /// Joins two ends. `handle` is how others see the tunnel.
    pub const fn new(downstream: D, upstream: U, machine: M, handle: Handle, now: Instant) -> Self {
        Self {
            downstream,
            upstream,
            machine,
            handle,
            timer: None,
            path: None,
            opened: None,
            born: now,
        }
    }

    /// Moves bytes until the path beyond the upstream end is open.
    ///
    /// # Errors
    ///
    /// How the stream ended, when it did before.
    ///
    /// # Cancel safety
    ///
    /// As [`Tunnel::run`].
    pub async fn open(&mut self) -> Result<Opened, Outcome> {
        std::future::poll_fn(|cx| match self.poll_run(cx) {
            Poll::Ready(outcome) => Poll::Ready(Err(outcome)),
            Poll::Pending => self
                .opened
                .take()
                .map_or(Poll::Pending, |opened| Poll::Ready(Ok(opened))),
        })
        .await
    }

    /// Moves bytes until the stream has ended, and says how.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost: the tunnel goes on where it was when it is run again.
    pub async fn run(&mut self) -> Outcome {
        std::future::poll_fn(|cx| self.poll_run(cx)).await
    }

    /// After [`Tunnel::run`]: waits until both neighbours know of the end, at most as long as one
    /// that takes nothing is worth waiting for, and then cuts what is left.
    pub async fn linger(mut self) {
        let patience = tokio::time::Instant::now() + self.machine.linger();
        let gone = std::future::poll_fn(|cx| {
            let down = self.downstream.poll_gone(cx).is_ready();
            let up = self.upstream.poll_gone(cx).is_ready();
            if down && up {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        });
        if tokio::time::timeout_at(patience, gone).await.is_err() {
            self.downstream.cut();
            self.upstream.cut();
        }
    }

    /// As [`Tunnel::run`], for those who drive the tunnel from a poll of their own.
    pub fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Outcome> {
        for _ in 0..TURN {
            let now = Instant::now();
            let mut moved = self.poll_side(Side::Downstream, now, cx);
            moved |= self.poll_side(Side::Upstream, now, cx);
            if let Some(note) = self.handle.take_note(cx) {
                match *note {
                    Note::Close(end) => self.machine.close(end),
                    Note::CloseBy(end, until) => self.machine.close_by(end, until),
                    Note::Told(side, rank, end) => self.machine.end(side, rank, end),
                }
            }
            self.machine.settle(now);
            // Room on one side lets the other be read again.
            moved |= self.write(cx, now);
            self.machine.settle(now);
            if let Some(outcome) = self.outcome(now) {
                self.write(cx, now);
                return Poll::Ready(outcome);
            }
            if !moved && !self.poll_timer(cx) {
                self.report(now);
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads what a side has, within a batch, and flushes the other. Says whether anything moved.
    fn poll_side(&mut self, side: Side, now: Instant, cx: &mut Context<'_>) -> bool {
        let mut moved = false;
        loop {
            let room = self.end_at(side.other()).poll_room(cx).is_ready();
            let Poll::Ready(read) = self.end_at(side).poll_read(room, cx) else {
                break;
            };
            moved = true;
            let more = matches!(read, Read::Data(_)) && self.end_at(side).reads_ahead();
            self.read(side, read, now);
            if !more || self.end_at(side.other()).waiting() >= BATCH {
                break;
            }
        }
        if moved {
            self.flush(side.other(), now, cx);
        }
        moved
    }

    fn read(&mut self, side: Side, read: Read<I>, now: Instant) {
        let arrival = match read {
            Read::Data(item) => return self.carry(side, item, now),
            Read::Opened(opened) => return self.opened(side, opened),
            Read::Violation(reason, message) => return self.machine.violate(side, reason, message),
            Read::Ended(rank, end) => return self.machine.end(side, rank, end),
            Read::Empty => Arrival::Data(0),
            Read::FinFrame => Arrival::FinFrame,
            Read::End => Arrival::End,
            Read::Init => Arrival::Init,
            Read::Unknown => Arrival::Unknown,
        };
        self.machine.hear(side, arrival, now);
    }

    fn carry(&mut self, side: Side, item: I, now: Instant) {
        match self.machine.recv(side, item, now) {
            Taken::Deliver(item) => self.end_at(side.other()).queue(item),
            Taken::Discard(weight) => self.end_at(side).credit(weight),
            Taken::Announce => {
                if let Some(opened) = self.path.take() {
                    self.announce(side, opened);
                }
            }
        }
    }

    fn opened(&mut self, side: Side, opened: Opened) {
        if self.machine.opened(side, &opened) {
            self.announce(side, opened);
        } else if side == Side::Upstream {
            self.path = Some(opened);
        }
    }

    /// The path beyond `side` is open: tells the other side.
    fn announce(&mut self, side: Side, opened: Opened) {
        self.end_at(side.other()).path_opened(&opened);
        if side == Side::Upstream {
            self.opened = Some(opened);
        }
    }

    /// Hands over what the machine has to say, and writes what is queued, on both sides. Says whether
    /// any of it was taken.
    fn write(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let taken = Side::BOTH.map(|side| self.flush(side, now, cx));
        taken.contains(&true)
    }

    fn flush(&mut self, side: Side, now: Instant, cx: &mut Context<'_>) -> bool {
        while let Some(write) = self.machine.poll_write(side) {
            self.end_at(side).command(write);
        }
        let flushed = self.end_at(side).poll_flush(cx);
        let taken = self.end_at(side).taken();
        if taken > 0 {
            self.handle.count(side, taken);
            self.machine.progressed(side, now);
            self.end_at(side.other()).credit(taken);
        }
        match flushed {
            Poll::Ready(Ok(())) => {
                self.machine.flushed(side);
                if I::WAITS_WITHOUT_PAYLOAD {
                    self.end_at(side.other()).credit(0);
                }
            }
            Poll::Ready(Err((rank, end))) => self.machine.end(side, rank, end),
            Poll::Pending if self.end_at(side).waiting() > 0 => self.machine.blocked(side, now),
            Poll::Pending => {}
        }
        taken > 0
    }

    fn outcome(&self, now: Instant) -> Option<Outcome> {
        let ended = self.machine.outcome()?;
        let progress = self.handle.progress(now);
        self.handle.set_state("closed");
        Some(Outcome {
            end: ended.err().cloned().map(Arc::new),
            ended_by: self.machine.ended_by(),
            bytes_up: progress.bytes_up,
            bytes_down: progress.bytes_down,
            duration: now.saturating_duration_since(self.born),
        })
    }

    /// Whether a deadline of the machine has been reached.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(at) = self.machine.poll_timeout() else {
            self.timer = None;
            return false;
        };
        let at = tokio::time::Instant::from_std(at);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if timer.deadline() != at {
            timer.as_mut().reset(at);
        }
        timer.as_mut().poll(cx).is_ready()
    }

    fn report(&self, now: Instant) {
        self.handle.set_state(self.machine.word());
        let stalled = self.downstream.waiting() > 0 || self.upstream.waiting() > 0;
        self.handle.set_stalled(stalled, now);
    }

    /// The downstream end, for those who are it.
    pub const fn downstream(&mut self) -> &mut D {
        &mut self.downstream
    }

    const fn end_at(&mut self, side: Side) -> &mut dyn End<Item = I> {
        match side {
            Side::Downstream => &mut self.downstream,
            Side::Upstream => &mut self.upstream,
        }
    }
}
