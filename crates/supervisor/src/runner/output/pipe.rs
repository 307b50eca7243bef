//! Our end of a pipe or a terminal that a command writes.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// The most bytes of one read.
const READ: usize = 64 * 1024;

/// Room for the first byte of what has not arrived yet.
const READ_AT_LEAST: usize = 512;

/// What may be under way in a terminal although it cannot be counted.
const UNCOUNTED: u64 = 68 * 1024;

/// What comes out of a pipe.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Some bytes, at least one.
    Bytes(Bytes),
    /// Nobody holds the other end.
    Finished,
    /// The command has ended, what it wrote has been read, and somebody else holds the other end.
    Held,
    /// It can be read no further, and nobody knows what else there was.
    Broken,
}

/// Our end, and how much came out of it.
#[derive(Debug)]
pub(in crate::runner) struct Pipe {
    file: Arc<AsyncFd<OwnedFd>>,
    is_terminal: bool,
    count: Mutex<Count>,
    /// Wakes who waits for somebody else to read on.
    pub(super) closed: AtomicWaker,
}

#[derive(Debug, Default)]
struct Count {
    read: u64,
    /// Set at the command's end: how much it had written, and until when others may add to it.
    end: Option<(u64, Instant)>,
    /// Set by who reads on when the rest is not sent: the total.
    closed: Option<Closed>,
}

/// How an output ended that was read to no avail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) total: u64,
    /// Closed to the caller before its end.
    pub(super) held_open: bool,
}

/// How much may be read.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    most: usize,
    /// What is not there is not waited for.
    is_late: bool,
}

impl Pipe {
    pub(in crate::runner) fn new(file: Arc<AsyncFd<OwnedFd>>, is_terminal: bool) -> Self {
        Self {
            file,
            is_terminal,
            count: Mutex::default(),
            closed: AtomicWaker::new(),
        }
    }

    /// Notes the command's end: what is in the pipe at this moment is what it wrote.
    pub(in crate::runner) fn mark_end(&self, others_until: Instant) {
        let mut count = self.lock();
        let counted = rustix::io::ioctl_fionread(self.file.get_ref()).unwrap_or_default();
        let uncounted = if self.is_terminal { UNCOUNTED } else { 0 };
        count.end = Some((count.read + counted + uncounted, others_until));
    }

    /// Bytes that came out of it.
    pub(super) fn total(&self) -> u64 {
        self.lock().read
    }

    /// Until when others may add to the output, once the command has ended.
    pub(super) fn others_until(&self) -> Option<Instant> {
        self.lock().end.map(|(_, until)| until)
    }

    /// Notes that the output, which somebody reads on to no avail, is over for the caller.
    pub(super) fn close(&self, held_open: bool) {
        let mut count = self.lock();
        let total = count.read;
        count.closed = Some(Closed { total, held_open });
        drop(count);
        self.closed.wake();
    }

    /// How the output ended that somebody reads on to no avail, once it has.
    pub(super) fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<Closed> {
        self.closed.register(cx.waker());
        self.lock().closed.map_or(Poll::Pending, Poll::Ready)
    }

    /// Takes some bytes.
    ///
    /// Who polls must poll again at [`Self::others_until`].
    pub(super) fn poll_take(&self, cx: &mut Context<'_>) -> Poll<Taken> {
        loop {
            let Some(allowed) = self.allowed() else {
                return Poll::Ready(Taken::Held);
            };
            let mut ready = None;
            if !allowed.is_late {
                match ready!(self.file.poll_read_ready(cx)) {
                    Ok(guard) => ready = Some(guard),
                    // Without a runtime nobody will ever read again.
                    Err(error) => return Poll::Ready(broken(&error)),
                }
            }
            match self.read(allowed.most) {
                Ok(bytes) if bytes.is_empty() => return Poll::Ready(Taken::Finished),
                Ok(bytes) => return Poll::Ready(Taken::Bytes(bytes)),
                Err(Errno::AGAIN) => match ready {
                    Some(mut ready) => ready.clear_ready(),
                    None => return Poll::Ready(Taken::Held),
                },
                Err(Errno::INTR) => {}
                // Nobody holds the terminal.
                Err(Errno::IO) if self.is_terminal => return Poll::Ready(Taken::Finished),
                Err(errno) => return Poll::Ready(broken(&errno.into())),
            }
        }
    }

    /// Reads and forgets, whoever writes; ends with the pipe.
    pub(super) async fn forget(&self) {
        let mut scrap = vec![0; 8192];
        std::future::poll_fn(|cx| self.poll_forget(cx, &mut scrap)).await;
    }

    fn poll_forget(&self, cx: &mut Context<'_>, scrap: &mut [u8]) -> Poll<()> {
        loop {
            // The caller has been told of this output what there is to tell: any end will do.
            let Ok(mut ready) = ready!(self.file.poll_read_ready(cx)) else {
                return Poll::Ready(());
            };
            match rustix::io::read(self.file.get_ref(), &mut *scrap) {
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Ok(0) => return Poll::Ready(()),
                Ok(_) => {}
                Err(errno) => {
                    tracing::debug!(error = %io::Error::from(errno), "what is forgotten cannot be read");
                    return Poll::Ready(());
                }
            }
        }
    }

    /// One read that does not block. It and its count are one step for [`Self::mark_end`].
    fn read(&self, most: usize) -> rustix::io::Result<Bytes> {
        let mut count = self.lock();
        let there = rustix::io::ioctl_fionread(self.file.get_ref()).unwrap_or_default();
        let there = usize::try_from(there).unwrap_or(READ);
        let mut bytes = Vec::with_capacity(there.max(READ_AT_LEAST).min(most));
        let room = rustix::buffer::spare_capacity(&mut bytes);
        rustix::io::read(self.file.get_ref(), room)?;
        count.read += bytes.len() as u64;
        Ok(Bytes::from(bytes))
    }

    /// How much may be read; nothing if the output is held, and over.
    fn allowed(&self) -> Option<Allowed> {
        let count = self.lock();
        let Some((written, until)) = count.end else {
            return Some(Allowed {
                most: READ,
                is_late: false,
            });
        };
        let left = usize::try_from(written.saturating_sub(count.read)).unwrap_or(READ);
        let is_late = until <= Instant::now();
        let most = match left {
            0 if is_late && self.is_held() => return None,
            // Before it is late: what others write. After that: the last that they have written.
            0 => READ,
            left => left.min(READ),
        };
        Some(Allowed { most, is_late })
    }

    /// Whether somebody holds the other end, whatever is in the pipe.
    fn is_held(&self) -> bool {
        let mut polled = [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::IN)];
        let now = Timespec::default();
        let asked = poll(&mut polled, Some(&now));
        asked.is_ok() && !polled[0].revents().contains(PollFlags::HUP)
    }

    fn lock(&self) -> MutexGuard<'_, Count> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What cannot be read is not over: its caller is told.
fn broken(error: &io::Error) -> Taken {
    tracing::warn!(%error, "what a command writes cannot be read");
    Taken::Broken
}
