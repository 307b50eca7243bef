//! Stdin and stdout as the two halves of one stream, which know of each other.

use std::io::{self, ErrorKind, IsTerminal};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, Stdin, Stdout};

/// What stdout tells stdin.
#[derive(Clone, Debug, Default)]
pub(super) struct Word(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    target_finished: AtomicBool,
    reader_gone: AtomicBool,
    reader: AtomicWaker,
}

impl Word {
    /// Whether stdout cannot be written to because nobody reads it any more.
    pub(super) fn is_reader_gone(&self) -> bool {
        self.0.reader_gone.load(Ordering::Relaxed)
    }

    fn target_finished(&self) {
        self.0.target_finished.store(true, Ordering::Release);
        self.0.reader.wake();
    }
}

/// Stdin. If it is a terminal it ends when the target does: a person who sees the end would not
/// know that somebody waits for theirs.
#[derive(Debug)]
pub(super) struct Input {
    stdin: Stdin,
    word: Option<Word>,
}

impl Input {
    pub(super) fn new(word: &Word) -> Self {
        Self {
            stdin: tokio::io::stdin(),
            word: io::stdin().is_terminal().then(|| word.clone()),
        }
    }
}

impl AsyncRead for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(Word(shared)) = &self.word {
            shared.reader.register(cx.waker());
            if shared.target_finished.load(Ordering::Acquire) {
                return Poll::Ready(Ok(()));
            }
        }
        Pin::new(&mut self.stdin).poll_read(cx, buffer)
    }
}

/// Stdout. Its shutdown is the end of file for whoever reads it, though this process goes on.
#[derive(Debug)]
pub(super) struct Output {
    stdout: Stdout,
    word: Word,
}

impl Output {
    pub(super) fn new(word: &Word) -> Self {
        Self {
            stdout: tokio::io::stdout(),
            word: word.clone(),
        }
    }

    fn note<T>(&self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && error.kind() == ErrorKind::BrokenPipe
        {
            self.word.0.reader_gone.store(true, Ordering::Relaxed);
        }
        result
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stdout).poll_write(cx, data));
        Poll::Ready(self.note(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stdout).poll_flush(cx));
        Poll::Ready(self.note(flushed))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        self.word.target_finished();
        Poll::Ready(close_stdout())
    }
}

/// Puts the null device in the place of stdout, so that its reader sees the end and nothing else
/// ever gets its number.
#[cfg(unix)]
fn close_stdout() -> io::Result<()> {
    let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(&null)?)
}

#[cfg(not(unix))]
const fn close_stdout() -> io::Result<()> {
    Ok(())
}
