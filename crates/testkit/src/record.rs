//! What one end of a TCP connection has seen so far, for a test to look at and to wait for.

use std::{fmt, io, time::Duration};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use crate::{content::Digest, wait::GENEROUS};

/// How many of the first bytes are kept word for word.
const HEAD: usize = 4096;

/// How a direction of a TCP connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// A clean FIN: `read` returned 0.
    Eof,
    /// ECONNRESET.
    Reset,
    /// Any other failure, for instance `BrokenPipe` on a write.
    Error(io::ErrorKind),
}

impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionReset => Self::Reset,
            other => Self::Error(other),
        }
    }
}

/// A snapshot of what one end of a connection saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How many bytes were read.
    pub bytes_read: u64,
    /// The digest of the bytes read.
    pub sha256: Digest,
    /// The first bytes read, at most 4 KiB.
    pub head: Bytes,
    /// How many bytes the kernel took from us.
    pub bytes_written: u64,
    /// How reading ended, once it has.
    pub read_end: Option<Ended>,
    /// How writing failed, if it did. Our own FIN is no failure.
    pub write_end: Option<Ended>,
    /// Whether this end has let go of the socket.
    pub closed: bool,
}

impl Seen {
    /// Tells whether the connection was reset, whichever direction noticed it.
    pub fn was_reset(&self) -> bool {
        let gone = [
            Some(Ended::Reset),
            Some(Ended::Error(io::ErrorKind::BrokenPipe)),
        ];
        gone.contains(&self.read_end) || gone.contains(&self.write_end)
    }
}

/// The running account of one end of a connection.
pub struct Record(watch::Sender<State>);

#[derive(Default)]
struct State {
    bytes_read: u64,
    hasher: Sha256,
    head: Vec<u8>,
    bytes_written: u64,
    read_end: Option<Ended>,
    write_end: Option<Ended>,
    closed: bool,
}

impl State {
    fn seen(&self) -> Seen {
        Seen {
            bytes_read: self.bytes_read,
            sha256: Digest::finish(self.hasher.clone()),
            head: Bytes::copy_from_slice(&self.head),
            bytes_written: self.bytes_written,
            read_end: self.read_end,
            write_end: self.write_end,
            closed: self.closed,
        }
    }
}

impl Record {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(State::default()))
    }

    /// Returns what has been seen up to now.
    pub fn seen(&self) -> Seen {
        self.0.borrow().seen()
    }

    /// Waits until at least `bytes` bytes were read.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn until_read(&self, bytes: u64) -> Seen {
        self.until("bytes to arrive", GENEROUS, |state| {
            state.bytes_read >= bytes
        })
        .await
    }

    /// Waits until reading has ended, cleanly or not.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn until_read_end(&self) -> Seen {
        self.until("the end of reading", GENEROUS, |state| {
            state.read_end.is_some()
        })
        .await
    }

    /// Waits until a write has failed.
    ///
    /// # Panics
    ///
    /// After `bound`.
    pub async fn until_write_fails(&self, bound: Duration) -> Seen {
        self.until("a write to fail", bound, |state| state.write_end.is_some())
            .await
    }

    /// Waits until this end has noticed, reading or writing, that the connection is broken.
    ///
    /// # Panics
    ///
    /// After `bound`.
    pub async fn until_reset(&self, bound: Duration) -> Seen {
        self.until("a reset", bound, |state| state.seen().was_reset())
            .await
    }

    /// Waits until this end has closed its socket.
    ///
    /// # Panics
    ///
    /// After 30 s.
    pub async fn until_closed(&self) -> Seen {
        self.until("the socket to be closed", GENEROUS, |state| state.closed)
            .await
    }

    async fn until(&self, what: &str, bound: Duration, done: impl Fn(&State) -> bool) -> Seen {
        let mut changes = self.0.subscribe();
        match tokio::time::timeout(bound, changes.wait_for(|state| done(state))).await {
            Ok(state) => state.expect("the sender is borrowed by this call").seen(),
            Err(_) => panic!("waited {bound:?} for {what}, seen: {:?}", self.seen()),
        }
    }

    pub(crate) fn read_bytes(&self, bytes: &[u8]) {
        self.0.send_modify(|state| {
            state.bytes_read += bytes.len() as u64;
            state.hasher.update(bytes);
            let wanted = (HEAD - state.head.len()).min(bytes.len());
            state.head.extend_from_slice(&bytes[..wanted]);
        });
    }

    /// Notes how reading ended; the first end stays. A reset that a write has used up (the kernel
    /// tells it once, then reads return 0) is still a reset.
    pub(crate) fn read_ended(&self, end: Ended) -> Ended {
        let mut noted = end;
        self.0.send_modify(|state| {
            let end = match (end, state.write_end) {
                (Ended::Eof, Some(Ended::Reset)) => Ended::Reset,
                _ => end,
            };
            noted = *state.read_end.get_or_insert(end);
        });
        noted
    }

    pub(crate) fn read_end(&self) -> Option<Ended> {
        self.0.borrow().read_end
    }

    pub(crate) fn wrote(&self, bytes: usize) {
        self.0
            .send_modify(|state| state.bytes_written += bytes as u64);
    }

    pub(crate) fn write_failed(&self, end: Ended) {
        self.0.send_modify(|state| {
            state.write_end.get_or_insert(end);
        });
    }

    pub(crate) fn closed(&self) {
        self.0.send_modify(|state| state.closed = true);
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.seen().fmt(f)
    }
}
