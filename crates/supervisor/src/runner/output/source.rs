//! One output, as its caller sees it.

use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tidegate_lifecycle::exec::Summary;
use tokio::runtime::Handle;

use super::Drains;
use super::budget::Budget;
use super::pipe::{Pipe, Taken};
use crate::runner::progress::Progress;

/// What comes out of an output.
#[derive(Debug)]
pub(in crate::runner) enum Sourced {
    /// Bytes to send on, at least one.
    Bytes(Bytes),
    /// Nothing more.
    Ended,
}

/// One output: a pipe, and what of it is sent on.
#[derive(Debug)]
pub(in crate::runner) struct Source {
    pipe: Option<Arc<Pipe>>,
    budget: Budget,
    /// Somebody else reads on: the budget is used up.
    discarding: bool,
    total: u64,
    held_open: bool,
    drains: Drains,
    runtime: Handle,
    progress: Arc<Progress>,
}

impl Source {
    /// Sends on at most `limit` bytes of what comes out of `pipe`.
    pub(in crate::runner) fn new(
        pipe: Arc<Pipe>,
        limit: Option<u64>,
        drains: Drains,
        runtime: Handle,
        progress: Arc<Progress>,
    ) -> Self {
        Self {
            pipe: Some(pipe),
            budget: Budget::new(limit),
            discarding: false,
            total: 0,
            held_open: false,
            drains,
            runtime,
            progress,
        }
    }

    /// Waits for bytes to send on, or for the end.
    ///
    /// Nothing is read before it is asked for. Who polls must poll again when the command has
    /// ended, and 250 ms later.
    pub(in crate::runner) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Sourced> {
        while let Some(pipe) = self.pipe.clone() {
            let bytes = if self.discarding {
                let closed = ready!(pipe.poll_closed(cx));
                self.end(closed.total, closed.held_open)
            } else {
                match ready!(pipe.poll_take(cx)) {
                    Taken::Bytes(bytes) => self.budget.take(bytes),
                    Taken::Finished => self.end(pipe.total(), false),
                    Taken::Held => {
                        self.drains.forget(&self.runtime, Arc::clone(&pipe));
                        self.end(pipe.total(), true)
                    }
                    // Closed before its end, like one that is held: there may be more.
                    Taken::Broken => self.end(pipe.total(), true),
                }
            };
            if self.budget.is_cut() && !self.discarding {
                self.discarding = true;
                let progress = Arc::clone(&self.progress);
                self.drains.discard(&self.runtime, pipe, progress);
            }
            if !bytes.is_empty() {
                return Poll::Ready(Sourced::Bytes(bytes));
            }
        }
        Poll::Ready(Sourced::Ended)
    }

    /// Whether nothing more comes out of it.
    pub(in crate::runner) const fn is_over(&self) -> bool {
        self.pipe.is_none()
    }

    /// What became of it so far.
    pub(in crate::runner) fn summary(&self) -> Summary {
        Summary {
            total: self.pipe.as_ref().map_or(self.total, |pipe| pipe.total()),
            sent: self.budget.sent(),
            truncated: self.budget.is_cut(),
            held_open: self.held_open,
        }
    }

    /// Until when others may add to it, if it is not over and the command has ended.
    pub(in crate::runner) fn others_until(&self) -> Option<tokio::time::Instant> {
        self.pipe.as_ref()?.others_until()
    }

    fn end(&mut self, total: u64, held_open: bool) -> Bytes {
        self.pipe = None;
        self.total = total;
        self.held_open = held_open;
        self.budget.finish()
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        // The caller is gone. Whoever still writes shall end by what it is told, not by SIGPIPE.
        if let Some(pipe) = self.pipe.take().filter(|_| !self.discarding) {
            self.drains.forget(&self.runtime, pipe);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use tokio::io::Interest;

    use super::*;
    use crate::runner::ready::watch_end;

    /// An output with "seen" in it; reading on ends with an error if it `breaks`.
    async fn read_through(breaks: bool, limit: Option<u64>) -> (Vec<u8>, Summary) {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut writer = ours.try_clone().unwrap();
        let ours = watch_end(OwnedFd::from(ours), Interest::READABLE).unwrap();
        let pipe = Arc::new(Pipe::new(Arc::new(ours), false));
        let drains = Drains::new(1);
        let progress = Arc::default();
        let mut source = Source::new(pipe, limit, drains, Handle::current(), progress);
        theirs.write_all(b"seen").unwrap();
        let mut bytes = Vec::new();
        if let Sourced::Bytes(data) = std::future::poll_fn(|cx| source.poll_next(cx)).await {
            bytes.extend_from_slice(&data);
        }
        if breaks {
            // A peer that goes without having read is an error for who reads.
            writer.write_all(b"never read").unwrap();
        }
        drop(theirs);
        while let Sourced::Bytes(data) = std::future::poll_fn(|cx| source.poll_next(cx)).await {
            bytes.extend_from_slice(&data);
        }
        (bytes, source.summary())
    }

    #[tokio::test]
    async fn an_output_that_cannot_be_read_has_not_come_to_its_end() {
        let (bytes, summary) = read_through(true, None).await;
        assert_eq!((&bytes[..], summary.held_open), (&b"seen"[..], true));
        let (bytes, summary) = read_through(false, None).await;
        assert_eq!((&bytes[..], summary.held_open), (&b"seen"[..], false));
    }

    #[tokio::test]
    async fn nor_has_one_that_is_only_counted() {
        let (bytes, summary) = read_through(true, Some(2)).await;
        assert_eq!((&bytes[..], summary.total), (&b"se"[..], 4));
        assert!(summary.truncated && summary.held_open, "{summary:?}");
        let (_, summary) = read_through(false, Some(2)).await;
        assert!(summary.truncated && !summary.held_open, "{summary:?}");
    }
}
