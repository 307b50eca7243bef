//! What all parts of one connection know about it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio_util::sync::CancellationToken;

use crate::outbox::Outbox;
use crate::{Lost, Reason};

/// The state of one connection, shared by its socket, its driver and its streams.
#[derive(Debug, Default)]
pub(crate) struct Life {
    ended: OnceLock<Lost>,
    over: CancellationToken,
    moving: AtomicBool,
    reads: AtomicUsize,
    streams: AtomicUsize,
    outbox: Outbox,
    tls_error: OnceLock<rustls::Error>,
}

impl Life {
    /// Notes why the connection ended. The first cause stays.
    pub(crate) fn end(&self, lost: Lost) {
        // A second cause comes from tearing down after the first: not worth keeping.
        let _ = self.ended.set(lost);
        self.over.cancel();
    }

    /// Waits for the end.
    pub(crate) async fn ended(&self) -> Lost {
        self.over.cancelled().await;
        self.cause()
            .expect("the cause is set before the token is cancelled")
    }

    /// Tells why the connection ended, if it has.
    pub(crate) fn cause(&self) -> Option<Lost> {
        self.ended.get().copied()
    }

    /// Translates an error of a stream. A stream only sees its connection vanish; what made it
    /// vanish is known here.
    pub(crate) fn lost(&self, error: &h2::Error) -> Lost {
        match (Lost::from(error), self.cause()) {
            (Lost::Broken(_), Some(Lost::PingTimeout)) => Lost::PingTimeout,
            // GOAWAY without an error says nothing about a stream that broke later.
            (Lost::Broken(_), Some(Lost::GoAway(reason))) if reason != Reason::NO_ERROR => {
                Lost::GoAway(reason)
            }
            (lost, _) => lost,
        }
    }

    /// Counts a stream in, unless `limit` are open.
    pub(crate) fn enter_stream(&self, limit: usize) -> bool {
        let next = |open| (open < limit).then_some(open + 1);
        self.streams
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, next)
            .is_ok()
    }

    /// Counts a stream out.
    pub(crate) fn leave_stream(&self) {
        self.streams.fetch_sub(1, Ordering::AcqRel);
    }

    /// Tells how many streams are open.
    pub(crate) fn streams(&self) -> usize {
        self.streams.load(Ordering::Acquire)
    }

    /// What the connection has taken for writing.
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Notes that bytes arrived.
    pub(crate) fn saw_read(&self) {
        self.reads.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes whenever bytes arrive.
    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// Asks the socket to register with the runtime that polls it next.
    pub(crate) fn move_socket(&self) {
        self.moving.store(true, Ordering::Release);
    }

    /// Tells once whether [`Life::move_socket`] was called.
    pub(crate) fn take_move(&self) -> bool {
        self.moving.load(Ordering::Relaxed) && self.moving.swap(false, Ordering::AcqRel)
    }

    /// Keeps what TLS said was wrong: `h2` passes on the kind of an I/O error only.
    pub(crate) fn note_tls(&self, error: &rustls::Error) {
        // The first is the cause, later ones are its echo.
        let _ = self.tls_error.set(error.clone());
    }

    /// Tells what TLS said was wrong.
    pub(crate) fn tls_error(&self) -> Option<&rustls::Error> {
        self.tls_error.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    #[test]
    fn the_first_cause_stays() {
        let life = Life::default();
        life.end(Lost::PingTimeout);
        life.end(Lost::Broken(ErrorKind::BrokenPipe));
        assert_eq!(life.cause(), Some(Lost::PingTimeout));
    }

    #[test]
    fn the_limit_is_kept() {
        let life = Life::default();
        assert!(life.enter_stream(2) && life.enter_stream(2) && !life.enter_stream(2));
        life.leave_stream();
        assert!(life.enter_stream(2));
    }
}
