//! The end that is a pair of byte streams, such as stdin and stdout.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::{End as StreamEnd, Origin, Reason};
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::Buffered;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::end::{End, Opened, Read};
use crate::queue::Queue;

const CHUNK: usize = 64 * 1024;

/// A reader and a writer as the downstream end of a tunnel.
///
/// Pipes know no reset: how the stream ended is the outcome of the tunnel. A failed write is
/// reported as a reset of the client's.
#[derive(Debug)]
pub struct PipeEnd<R, W> {
    reader: Option<R>,
    writer: Option<W>,
    buffer: Box<[u8]>,
    queue: Queue,
    closing: bool,
    taken: usize,
    announced: bool,
}

impl<R, W> PipeEnd<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    /// Joins a reader and a writer.
    pub fn new(reader: R, writer: W, total: &Arc<Buffered>) -> Self {
        Self {
            reader: Some(reader),
            writer: Some(writer),
            buffer: vec![0; CHUNK].into_boxed_slice(),
            queue: Queue::new(Arc::clone(total)),
            closing: false,
            taken: 0,
            announced: false,
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(writer) = &mut self.writer else {
            self.queue.clear();
            return Poll::Ready(Ok(()));
        };
        while !self.queue.is_empty() {
            let mut slots = [io::IoSlice::new(&[]); 1];
            self.queue.slices(&mut slots);
            let written = ready!(Pin::new(&mut *writer).poll_write(cx, &slots[0]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.queue.advance(written);
            self.taken += written;
        }
        ready!(Pin::new(&mut *writer).poll_flush(cx))?;
        if self.closing {
            ready!(Pin::new(&mut *writer).poll_shutdown(cx))?;
            self.writer = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl<R, W> End for PipeEnd<R, W>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    type Item = Bytes;

    fn poll_read(&mut self, room: bool, cx: &mut Context<'_>) -> Poll<Read> {
        if !std::mem::replace(&mut self.announced, true) {
            return Poll::Ready(Read::Opened(Opened::on(Capabilities::STREAM)));
        }
        let Some(reader) = self.reader.as_mut().filter(|_| room) else {
            return Poll::Pending;
        };
        let mut buffer = ReadBuf::new(&mut self.buffer);
        match ready!(Pin::new(reader).poll_read(cx, &mut buffer)) {
            Ok(()) if buffer.filled().is_empty() => {
                self.reader = None;
                Poll::Ready(Read::End)
            }
            Ok(()) => Poll::Ready(Read::Data(Bytes::copy_from_slice(buffer.filled()))),
            Err(error) => {
                self.reader = None;
                let (rank, end) = failed("input", &error);
                Poll::Ready(Read::Ended(rank, end))
            }
        }
    }

    fn queue(&mut self, data: Bytes) {
        self.queue.push(data);
    }

    fn command(&mut self, write: Write) {
        match write {
            Write::Reset(_) | Write::Status(_) => {
                self.queue.clear();
                self.writer = None;
            }
            Write::EndStream | Write::Close => self.closing = true,
            Write::FinFrame | Write::Ok | Write::Keepalive => {}
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), (Rank, StreamEnd)>> {
        let written = ready!(self.poll_write(cx));
        Poll::Ready(written.map_err(|error| {
            self.writer = None;
            failed("output", &error)
        }))
    }

    fn taken(&mut self) -> usize {
        std::mem::replace(&mut self.taken, 0)
    }

    fn poll_room(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        if self.queue.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn waiting(&self) -> usize {
        self.queue.len()
    }

    fn credit(&mut self, _bytes: usize) {}

    fn poll_gone(&mut self, _cx: &mut Context<'_>) -> Poll<()> {
        Poll::Ready(())
    }

    fn cut(&mut self) {
        self.writer = None;
    }
}

fn failed(what: &str, error: &io::Error) -> (Rank, StreamEnd) {
    let message = format!("the local {what} failed: {error}");
    (
        Rank::Typed,
        StreamEnd::new(Origin::Client, Reason::ClientReset, message),
    )
}
