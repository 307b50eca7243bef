//! The sending half, whose abort gets through when nothing else does.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use h2::{Reason, SendStream};
use http::HeaderMap;

use crate::client::Place;
use crate::life::Life;
use crate::outbox::Turn;
use crate::{Lost, Payload};

/// The sending half of a stream: the request at a client, the response at a server.
///
/// An end is said, with [`SendHalf::finish`] or [`SendHalf::send_trailers`]; everything else is an
/// abort. Dropped without an end, it resets the stream with CANCEL.
#[derive(Debug)]
pub struct SendHalf {
    outgoing: Arc<Outgoing>,
    /// The place among the streams that wait for their connection; made when it first waits.
    turn: Option<Arc<Turn>>,
    ended: bool,
}

impl SendHalf {
    pub(crate) fn new(outgoing: Arc<Outgoing>) -> Self {
        Self {
            outgoing,
            turn: None,
            ended: false,
        }
    }

    /// Waits for this stream's turn to hand more over: while its connection has enough to write, of
    /// all its streams together, reading on for it only fills memory.
    ///
    /// Ready also on a connection that is lost: [`SendHalf::send`] tells.
    pub fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let outbox = self.outgoing.life.outbox();
        if outbox.has_room() {
            return Poll::Ready(());
        }
        outbox.poll_room(self.turn.get_or_insert_default(), cx)
    }

    /// Waits until some of `want` bytes can be sent, and returns how many: 1 to `want`.
    ///
    /// What is returned is the peer's credit, at most 256 KiB less what is unwritten. It is this
    /// stream's until [`SendHalf::send`].
    ///
    /// # Errors
    ///
    /// [`Lost`] when the stream ended in the meantime.
    pub fn poll_capacity(
        &mut self,
        want: usize,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, Lost>> {
        let mut stream = self.outgoing.stream();
        stream.reserve_capacity(want);
        let capacity = stream.capacity();
        if capacity > 0 {
            return Poll::Ready(Ok(capacity.min(want)));
        }
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(capacity)) => Poll::Ready(Ok(capacity.min(want))),
            Some(Err(error)) => Poll::Ready(Err(self.outgoing.life.lost(&error))),
            None => Poll::Ready(Err(self.outgoing.why(&mut stream))),
        }
    }

    /// Waits until some of `want` bytes can be sent, as [`SendHalf::poll_capacity`].
    ///
    /// # Errors
    ///
    /// [`Lost`] when the stream ended in the meantime.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing is sent by waiting.
    pub async fn capacity(&mut self, want: usize) -> Result<usize, Lost> {
        poll_fn(|cx| self.poll_capacity(want, cx)).await
    }

    /// Hands over `payload`. Within the capacity it leaves at once, beyond it waits in the library.
    ///
    /// Credit that was reserved and not used goes back, so that a quiet stream holds none of a
    /// small connection window.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the stream ended in the meantime; the payload is discarded.
    pub fn send(&mut self, payload: Payload) -> Result<(), Lost> {
        let mut stream = self.outgoing.stream();
        let sent = stream.send_data(payload.taken_by(&self.outgoing.life), false);
        stream.reserve_capacity(0);
        sent.map_err(|_| self.outgoing.why(&mut stream))
    }

    /// Says the end with `trailers`, which leave after all that was sent.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the stream ended in the meantime.
    pub fn send_trailers(&mut self, trailers: HeaderMap) -> Result<(), Lost> {
        let mut stream = self.outgoing.stream();
        self.ended = true;
        stream
            .send_trailers(trailers)
            .map_err(|_| self.outgoing.why(&mut stream))
    }

    /// Says the end: END_STREAM, after all that was sent.
    ///
    /// # Errors
    ///
    /// [`Lost`] when the stream ended in the meantime.
    pub fn finish(&mut self) -> Result<(), Lost> {
        self.finish_with(Payload::empty())
    }

    /// Hands over `payload` and says the end with it, in one frame.
    ///
    /// # Errors
    ///
    /// As [`SendHalf::send`].
    pub fn finish_with(&mut self, payload: Payload) -> Result<(), Lost> {
        let mut stream = self.outgoing.stream();
        self.ended = true;
        stream
            .send_data(payload.taken_by(&self.outgoing.life), true)
            .map_err(|_| self.outgoing.why(&mut stream))
    }

    /// Resets the stream, in both directions and at once: what waits to be sent is discarded, so
    /// that the reset gets through however blocked the stream is. Does nothing to a closed one.
    pub fn reset(&mut self, reason: Reason) {
        self.ended = true;
        self.outgoing.reset(reason);
    }

    /// Waits for a reset or a loss, although nobody writes.
    ///
    /// It goes on noticing after [`SendHalf::finish`] and [`SendHalf::send_trailers`], until the
    /// peer has ended its side too. A GOAWAY that names this stream reads as a reset here; the
    /// receiving half tells the two apart.
    pub fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Lost> {
        let mut stream = self.outgoing.stream();
        stream.poll_reset(cx).map(|reset| self.outgoing.lost(reset))
    }

    /// Waits for a reset or a loss, as [`SendHalf::poll_reset`].
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn closed(&mut self) -> Lost {
        poll_fn(|cx| self.poll_reset(cx)).await
    }
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        if let Some(turn) = &self.turn {
            turn.give_up();
        }
        if !self.ended {
            self.outgoing.reset(Reason::CANCEL);
        }
    }
}

/// The library's sending side of a stream, which the receiving half of a client needs as well: to
/// cancel. The lock is held by one task at a time and never waited for.
#[derive(Debug)]
pub(crate) struct Outgoing {
    stream: Mutex<SendStream<Payload>>,
    life: Arc<Life>,
    /// At a client, the stream's place among those of its connection, which lives as long.
    _place: Option<Place>,
}

impl Outgoing {
    pub(crate) fn at_server(stream: SendStream<Payload>, life: Arc<Life>) -> Arc<Self> {
        Arc::new(Self {
            stream: Mutex::new(stream),
            life,
            _place: None,
        })
    }

    pub(crate) fn at_client(stream: SendStream<Payload>, place: Place) -> Arc<Self> {
        let life = Arc::clone(place.life());
        Arc::new(Self {
            stream: Mutex::new(stream),
            life,
            _place: Some(place),
        })
    }

    pub(crate) fn life(&self) -> &Arc<Life> {
        &self.life
    }

    pub(crate) fn reset(&self, reason: Reason) {
        self.stream().send_reset(reason);
    }

    fn stream(&self) -> MutexGuard<'_, SendStream<Payload>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds out why the library refused a frame.
    fn why(&self, stream: &mut SendStream<Payload>) -> Lost {
        let mut cx = Context::from_waker(Waker::noop());
        match stream.poll_reset(&mut cx) {
            Poll::Ready(reset) => self.lost(reset),
            // Not reset, so ended by ourselves: a mistake of the caller.
            Poll::Pending => Lost::Reset(Reason::STREAM_CLOSED),
        }
    }

    fn lost(&self, reset: Result<Reason, h2::Error>) -> Lost {
        match reset {
            Ok(reason) => Lost::Reset(reason),
            Err(error) => self.life.lost(&error),
        }
    }
}
