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
                Err(terminal) => {
                    self.settle();
                    self.terminal.insert(terminal).clone()
                }
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

    /// Gives credit for `bytes` that were received and are held no more. After the end there is
    /// nobody to give it to.
    pub fn release(&mut self, bytes: usize) {
        if self.terminal.is_some() {
            return;
        }
        let released = self.stream.flow_control().release_capacity(bytes);
        debug_assert!(released.is_ok(), "credit given for more than was received");
    }

    /// Nothing can follow, so that what is still held is no concern of the connection: charged to its
    /// window it would be for as long as the other direction lives.
    fn settle(&mut self) {
        let held = self.stream.flow_control().used_capacity();
        self.release(held);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_held_at_the_end_is_not_charged_to_the_connection() {
        let (near, far) = tokio::io::duplex(1024);
        let client = async {
            let (mut requests, connection) = h2::client::handshake(far).await.unwrap();
            let (_response, mut body) = requests
                .send_request(http::Request::new(()), false)
                .unwrap();
            body.send_data(Bytes::from_static(b"12345"), true).unwrap();
            connection.await
        };
        let server = async {
            let mut connection = h2::server::handshake(near).await.unwrap();
            let (request, _respond) = connection.accept().await.unwrap().unwrap();
            let mut recv = RecvHalf::at_server(request.into_body(), Arc::default());
            let read = async {
                let data = recv.recv().await;
                (data, recv.recv().await)
            };
            let read = tokio::select! {
                read = read => read,
                _ = connection.accept() => panic!("there was one request"),
            };
            let data = Received::Data(Bytes::from_static(b"12345"));
            assert_eq!(read, (data, Received::End));
            assert_eq!(recv.stream.flow_control().used_capacity(), 0);
            recv.release(5);
        };
        tokio::select! {
            () = server => {}
            ended = client => panic!("the connection ended: {ended:?}"),
        }
    }
}
