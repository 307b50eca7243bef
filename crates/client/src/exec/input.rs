//! The half that speaks to a command.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tidegate_bridge::{PipeSender, Progress};
use tidegate_lifecycle::cause::End;
use tidegate_lifecycle::exec::TerminalSize;
use tidegate_wire::exec::Item;

use super::task::Task;

/// Speaks to a command. Dropping it while the command runs cancels it: who has no more to say says
/// so with [`Input::close`] and keeps it.
#[derive(Debug)]
pub struct Input {
    sender: PipeSender,
    closed: bool,
    task: Arc<Task>,
}

impl Input {
    pub(super) const fn new(sender: PipeSender, task: Arc<Task>) -> Self {
        Self {
            sender,
            closed: false,
            task,
        }
    }

    /// Ready when the command has room for more stdin, or has ended well and takes no notice.
    ///
    /// # Errors
    ///
    /// How the stream ended, when it has ended badly.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn ready(&mut self) -> Result<(), End> {
        std::future::poll_fn(|cx| self.poll_ready(cx)).await
    }

    /// As [`Input::ready`].
    ///
    /// # Errors
    ///
    /// As [`Input::ready`].
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        self.sender.poll_ready(cx)
    }

    /// Writes to the command's stdin without waiting for room: see [`Input::ready`]. After
    /// [`Input::close`] nothing is written.
    pub fn write_now(&mut self, data: impl Into<Bytes>) {
        if !self.closed {
            let pieces = Item::Stdin(data.into()).pieces();
            pieces.for_each(|piece| self.sender.send_now(piece));
        }
    }

    /// Writes to the command's stdin, at its pace. A command that has ended takes no notice.
    ///
    /// # Errors
    ///
    /// How the stream ended, when it has ended badly.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part of the data may have been written.
    pub async fn write(&mut self, data: impl Into<Bytes>) -> Result<(), End> {
        for piece in Item::Stdin(data.into()).pieces() {
            self.ready().await?;
            if let Item::Stdin(piece) = piece {
                self.write_now(piece);
            }
        }
        Ok(())
    }

    /// Ends the command's stdin, behind all that was written, and nothing else.
    pub fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.sender.send_now(Item::StdinFin);
        }
    }

    /// Tells the command's terminal its new size. A command without one takes no notice of it on an
    /// older path, and is ended by it elsewhere: do not.
    pub fn resize(&mut self, size: TerminalSize) {
        self.sender.send_now(Item::Resize(size));
    }

    /// Sends a signal, by its Linux number, to the foreground of the command's terminal or to its
    /// group; see [`Started::takes_signals`](super::Started::takes_signals).
    ///
    /// It leaves behind the stdin that was written, and overtakes what the command has not read
    /// when it arrives. Behind more than a stream's window of unread stdin, 1 MiB, it waits:
    /// [`Self::cancel`] never does.
    pub fn signal(&mut self, number: i32) {
        self.sender.send_now(Item::Signal(number));
    }

    /// Ends the command, its descendants with it.
    pub fn cancel(&self) {
        self.task.cancel();
    }

    /// How many bytes went to the gateway and came from it so far.
    pub fn progress(&self) -> Progress {
        self.task.progress()
    }
}
