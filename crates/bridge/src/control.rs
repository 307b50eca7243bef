//! A control stream: whole messages both ways, none of which waits behind bulk.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tidegate_lifecycle::cause::{End, Origin};
use tidegate_transport::{Buffered, Ledger, Lost, Payload, Received, RecvHalf, SendHalf};
use tidegate_wire::message::{FrameError, MessageReader};
use tidegate_wire::status;

use crate::queue::Queue;

/// The bytes that may wait for a peer that does not read its control stream. A session that is
/// further behind is as good as lost.
const BACKLOG: usize = 16 * 1024 * 1024;

/// What a control stream brings.
#[derive(Debug)]
pub enum Said {
    /// A message, without its frame.
    Message(Bytes),
    /// The peer ended its direction cleanly.
    End,
    /// A server's final status.
    Status(Result<(), End>),
    /// The bytes were no message.
    Malformed(FrameError),
    /// The stream was lost.
    Lost(Lost),
}

/// The receiving half.
#[derive(Debug)]
pub struct ControlReceiver {
    recv: RecvHalf,
    reader: MessageReader,
    origin: Origin,
}

/// Reads messages from `recv`; `reader` may hold some already. A status without an origin of its own
/// gets `origin`.
pub const fn control_receiver(
    recv: RecvHalf,
    reader: MessageReader,
    origin: Origin,
) -> ControlReceiver {
    ControlReceiver {
        recv,
        reader,
        origin,
    }
}

impl ControlReceiver {
    /// The next thing said. After the end of the stream the same end is said again.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub async fn next(&mut self) -> Said {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`ControlReceiver::next`].
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Said> {
        loop {
            match self.reader.next() {
                Ok(Some(message)) => return Poll::Ready(Said::Message(message)),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Said::Malformed(error)),
            }
            match ready!(self.recv.poll_recv(cx)) {
                Received::Data(data) => {
                    self.recv.release(data.len());
                    self.reader.push(data);
                }
                Received::End if self.reader.is_at_boundary() => return Poll::Ready(Said::End),
                Received::End => return Poll::Ready(Said::Malformed(FrameError::Malformed)),
                Received::Trailers(trailers) => {
                    return Poll::Ready(Said::Status(status::parse(&trailers, self.origin)));
                }
                Received::Lost(lost) => return Poll::Ready(Said::Lost(lost)),
            }
        }
    }
}

/// The sending half, with a queue of its own.
#[derive(Debug)]
pub struct ControlSender {
    send: SendHalf,
    queue: Queue,
    ledger: Arc<Ledger>,
}

/// Writes messages to `send`.
pub fn control_sender(send: SendHalf, total: &Arc<Buffered>) -> ControlSender {
    ControlSender {
        send,
        queue: Queue::new(Arc::clone(total)),
        ledger: Ledger::new(Arc::clone(total)),
    }
}

impl ControlSender {
    /// Queues a message with its frame. Says whether the peer is still worth talking to: false when
    /// it has left too much unread.
    pub fn push(&mut self, message: Bytes) -> bool {
        self.queue.push(message);
        self.queue.len() <= BACKLOG
    }

    /// Writes what is queued; ready when all of it was written, or when the stream is lost.
    ///
    /// # Errors
    ///
    /// [`Lost`] when nothing can be written any more.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        while !self.queue.is_empty() {
            let granted = ready!(self.send.poll_capacity(self.queue.len(), cx))?;
            let mut segments = Vec::new();
            let mut room = granted;
            while room > 0
                && let Some(piece) = self.queue.take(room)
            {
                room -= piece.len();
                segments.push(piece);
            }
            self.send.send(Payload::new(segments, &self.ledger))?;
        }
        self.ledger.poll_empty(cx).map(Ok)
    }

    /// As [`ControlSender::poll_flush`].
    ///
    /// # Errors
    ///
    /// As [`ControlSender::poll_flush`].
    ///
    /// # Cancel safety
    ///
    /// What was not written stays queued.
    pub async fn flush(&mut self) -> Result<(), Lost> {
        std::future::poll_fn(|cx| self.poll_flush(cx)).await
    }

    /// The half itself, to end the stream with.
    pub fn into_half(self) -> SendHalf {
        self.send
    }
}
