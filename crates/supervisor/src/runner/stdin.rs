//! The input of a command.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

use super::progress::Progress;
use super::terminal::{Line, Terminal};

/// Our end of a command's input.
///
/// Whoever writes to it and whoever ends the command share it: it is closed when the caller says
/// so or when the command has ended, and not because somebody let go of it. A filter must not take
/// half of its input for the whole because its caller went away.
#[derive(Debug)]
pub(super) enum Inlet {
    /// A pipe, until it is closed.
    Pipe(Mutex<Option<Arc<AsyncFd<OwnedFd>>>>),
    /// A terminal.
    Terminal(Terminal),
}

impl Inlet {
    pub(super) fn pipe(file: AsyncFd<OwnedFd>) -> Self {
        Self::Pipe(Mutex::new(Some(Arc::new(file))))
    }

    /// A pipe that nobody will write to.
    pub(super) const fn closed() -> Self {
        Self::Pipe(Mutex::new(None))
    }

    /// Closes a pipe: its reader sees the end of its input.
    pub(super) fn close(&self) {
        if let Self::Pipe(file) = self {
            lock(file).take();
        }
    }

    /// Our end, if it is open.
    pub(super) fn file(&self) -> Option<Arc<AsyncFd<OwnedFd>>> {
        match self {
            Self::Pipe(file) => lock(file).clone(),
            Self::Terminal(terminal) => Some(Arc::clone(terminal.file())),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The writing half of a command that runs.
///
/// Dropping it closes nothing: only [`close`](Self::close) is the end of the input.
#[derive(Debug)]
pub struct Stdin {
    inlet: Arc<Inlet>,
    progress: Arc<Progress>,
    line: Line,
    /// What ends the input on a terminal, as far as it is not written.
    end: Option<Bytes>,
    is_closed: bool,
}

impl Stdin {
    pub(super) fn new(inlet: Arc<Inlet>, progress: Arc<Progress>) -> Self {
        Self {
            inlet,
            progress,
            line: Line::default(),
            end: None,
            is_closed: false,
        }
    }

    /// Writes some of `bytes` as the command takes them, and advances it by as much; ready when it
    /// is empty.
    ///
    /// What is written after the command has ended, after it has closed its input or after
    /// [`close`](Self::close) is dropped: that is no error, commands need not read.
    pub fn poll_write(&mut self, cx: &mut Context<'_>, bytes: &mut Bytes) -> Poll<()> {
        while !bytes.is_empty() {
            let file = self.inlet.file().filter(|_| !self.is_closed);
            let Some(file) = file else {
                bytes.clear();
                break;
            };
            self.progress.wake_writer(cx);
            if self.progress.has_ended() {
                bytes.clear();
                break;
            }
            let Ok(mut ready) = ready!(file.poll_write_ready(cx)) else {
                bytes.clear();
                break;
            };
            match rustix::io::write(file.get_ref(), bytes) {
                Ok(written) => {
                    if let Inlet::Terminal(terminal) = &*self.inlet {
                        terminal.wrote(&mut self.line, &bytes[..written]);
                    }
                    bytes.advance(written);
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                // EPIPE: nobody reads it any more.
                Err(_) => bytes.clear(),
            }
        }
        Poll::Ready(())
    }

    /// Writes all of `bytes`, as the command takes them.
    ///
    /// # Cancel safety
    ///
    /// Not safe: how much was written is lost. [`poll_write`](Self::poll_write) tells.
    pub async fn write(&mut self, mut bytes: Bytes) {
        std::future::poll_fn(|cx| self.poll_write(cx, &mut bytes)).await;
    }

    /// Ends the input, and nothing else: the command sees the end of its standard input.
    ///
    /// On a terminal its end-of-file character is written, unless the program has left the mode in
    /// which it means anything.
    pub fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_closed {
            return Poll::Ready(());
        }
        if let Inlet::Terminal(terminal) = &*self.inlet {
            let mut end = self
                .end
                .take()
                .unwrap_or_else(|| Bytes::from(terminal.end_of_input(&self.line)));
            if self.poll_write(cx, &mut end).is_pending() {
                self.end = Some(end);
                return Poll::Pending;
            }
        }
        self.is_closed = true;
        self.inlet.close();
        self.progress.close_input();
        Poll::Ready(())
    }

    /// Ends the input, like [`poll_close`](Self::poll_close).
    ///
    /// # Cancel safety
    ///
    /// Safe: call it again.
    pub async fn close(&mut self) {
        std::future::poll_fn(|cx| self.poll_close(cx)).await;
    }
}
