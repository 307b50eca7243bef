//! The halves of a stream as the bodies that tonic services read and write.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame};

use super::{Received, RecvHalf, SendHalf};
use crate::{Lost, Payload};

/// Bytes of a body that are sent at once.
const CHUNK: usize = 64 * 1024;

/// A receiving half as a body. Reading it gives credit; a loss is an error, never an end.
#[derive(Debug)]
pub(crate) struct Incoming {
    recv: RecvHalf,
    over: bool,
}

impl Incoming {
    pub(crate) fn new(recv: RecvHalf) -> Self {
        Self { recv, over: false }
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = Lost;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Lost>>> {
        if self.over {
            return Poll::Ready(None);
        }
        let frame = match ready!(self.recv.poll_recv(cx)) {
            Received::Data(data) => {
                self.recv.release(data.len());
                return Poll::Ready(Some(Ok(Frame::data(data))));
            }
            Received::End => None,
            Received::Trailers(trailers) => Some(Ok(Frame::trailers(trailers))),
            Received::Lost(lost) => Some(Err(lost)),
        };
        self.over = true;
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.over
    }
}

/// Sends a body to its end, as fast as credit allows. Ends early when the stream is lost.
#[derive(Debug)]
pub(crate) struct Upload<B> {
    send: SendHalf,
    body: B,
    chunk: Bytes,
}

impl<B> Upload<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    pub(crate) fn new(send: SendHalf, body: B) -> Self {
        Self {
            send,
            body,
            chunk: Bytes::new(),
        }
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        while self.chunk.has_remaining() {
            let want = self.chunk.len().min(CHUNK);
            let capacity = ready!(self.send.poll_capacity(want, cx))?;
            let piece = self.chunk.split_to(capacity);
            self.send.send(Payload::untracked(vec![piece]))?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        loop {
            ready!(self.poll_chunk(cx))?;
            match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
                None => return Poll::Ready(self.send.finish()),
                // Whoever makes the body knows what failed; the peer sees a cancelled stream.
                Some(Err(_)) => {
                    self.send.reset(h2::Reason::CANCEL);
                    return Poll::Ready(Ok(()));
                }
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.chunk = data,
                    Err(frame) => {
                        let trailers = frame.into_trailers().unwrap_or_default();
                        return Poll::Ready(self.send.send_trailers(trailers));
                    }
                },
            }
        }
    }
}

impl<B> Future for Upload<B>
where
    B: Body<Data = Bytes> + Unpin,
{
    type Output = Result<(), Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(sent) = self.poll_send(cx) {
            return Poll::Ready(sent);
        }
        self.send.poll_reset(cx).map(Err)
    }
}
