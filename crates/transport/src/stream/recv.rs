//! The receiving half, which tells an end from a loss.

use std::future::poll_fn;
use std::io::ErrorKind;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h2::{Reason, RecvStream};
use http::HeaderMap;

use super::Outgoing;
use crate::Lost;
use crate::life::Life;

/// What arrives on a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum Received {
    /// Bytes, never empty. Their credit is the caller's to give ([`RecvHalf::release`]).
    Data(Bytes),
    /// END_STREAM was seen, without trailers: the peer said its end.
    End,
    /// Trailers were seen: the peer said its end, and how it went.
    Trailers(HeaderMap),
    /// Anything else ended the stream: an abort, never an end.
    Lost(Lost),
}

/// The receiving half of a stream: the request at a server, the response at a client.
///
/// Reading takes frames out of the library without giving credit, so that what arrives is bounded
/// by the stream's window until [`RecvHalf::release`] lets the peer send on.
///
/// Dropped before its end at a client, it resets the stream with CANCEL: nobody is left to hear the
/// answer. At a server it only stops reading; the reset (NO_ERROR) follows the trailers.
#[derive(Debug)]
pub struct RecvHalf {
    stream: RecvStream,
    life: Arc<Life>,
    request: Option<Arc<Outgoing>>,
    terminal: Option<Terminal>,
}

/// How the stream ended, kept small: most streams are waiting for it.
#[derive(Clone, Debug)]
enum Terminal {
    End,
    Trailers(Box<HeaderMap>),
    Lost(Lost),
}

impl RecvHalf {
    pub(crate) fn at_server(stream: RecvStream, life: Arc<Life>) -> Self {
        Self {
            stream,
            life,
            request: None,
            terminal: None,
        }
    }

    pub(crate) fn at_client(stream: RecvStream, request: Arc<Outgoing>) -> Self {
        let life = Arc::clone(request.life());
        Self {
            stream,
            life,
            request: Some(request),
            terminal: None,
        }
    }

    /// Waits for what arrives next. After the end it returns the end again.
    pub fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Received> {
        let terminal = match &self.terminal {
            Some(terminal) => terminal.clone(),
            None => match ready!(self.poll_data(cx)) {
                Ok(data) => return Poll::Ready(Received::Data(data)),
                Err(terminal) => self.terminal.insert(terminal).clone(),
            },
        };
        Poll::Ready(terminal.into())
    }

    /// Waits for what arrives next. After the end it returns the end again.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: nothing that arrived is lost.
    pub async fn recv(&mut self) -> Received {
        poll_fn(|cx| self.poll_recv(cx)).await
    }

    /// Gives credit for `bytes` that were received and are held no more.
    pub fn release(&mut self, bytes: usize) {
        let released = self.stream.flow_control().release_capacity(bytes);
        debug_assert!(released.is_ok(), "credit given for more than was received");
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Bytes, Terminal>> {
        loop {
            match ready!(self.stream.poll_data(cx)) {
                // The empty frame that carries an END_STREAM.
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => return Poll::Ready(Ok(data)),
                Some(Err(error)) => return Poll::Ready(Err(self.lost(&error))),
                None => return self.poll_end(cx).map(Err),
            }
        }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Terminal> {
        Poll::Ready(match ready!(self.stream.poll_trailers(cx)) {
            Ok(Some(trailers)) => Terminal::Trailers(Box::new(trailers)),
            Ok(None) if self.stream.is_end_stream() => Terminal::End,
            Ok(None) => Terminal::Lost(Lost::Broken(ErrorKind::UnexpectedEof)),
            Err(error) => self.lost(&error),
        })
    }

    fn lost(&self, error: &h2::Error) -> Terminal {
        Terminal::Lost(self.life.lost(error))
    }
}

impl Drop for RecvHalf {
    fn drop(&mut self) {
        if let (Some(request), None) = (&self.request, &self.terminal) {
            request.reset(Reason::CANCEL);
        }
    }
}

impl From<Terminal> for Received {
    fn from(terminal: Terminal) -> Self {
        match terminal {
            Terminal::End => Self::End,
            Terminal::Trailers(trailers) => Self::Trailers(*trailers),
            Terminal::Lost(lost) => Self::Lost(lost),
        }
    }
}
