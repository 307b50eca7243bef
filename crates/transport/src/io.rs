//! The bytes under a connection: a TCP socket that can change its thread, plain or inside TLS.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::life::Life;

/// A TCP socket that notes when bytes arrive, and follows its connection to another runtime.
///
/// A tokio socket belongs to the reactor of the runtime that made it. After
/// [`Life::move_socket`] the next poll, which happens on the new runtime, registers it there.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: Option<TcpStream>,
    life: Arc<Life>,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, life: Arc<Life>) -> Self {
        Self {
            stream: Some(stream),
            life,
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut TcpStream>> {
        if self.life.take_move()
            && let Some(stream) = self.stream.take()
        {
            self.stream = Some(TcpStream::from_std(stream.into_std()?)?);
        }
        // Absent only after a failed move.
        self.stream
            .as_mut()
            .map(Pin::new)
            .ok_or_else(|| io::ErrorKind::NotConnected.into())
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(self.stream()?.poll_read(cx, buf))?;
        if buf.filled().len() > before {
            self.life.saw_read();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream()?.poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream()?.poll_shutdown(cx)
    }
}

/// What `h2` reads from and writes to.
#[derive(Debug)]
pub(crate) enum Io {
    Plain(Socket),
    Tls(Box<TlsStream<Socket>>, Arc<Life>),
}

/// Calls the same method of whichever it is.
macro_rules! either {
    ($io:expr, $inner:ident => $call:expr) => {
        match $io.get_mut() {
            Io::Plain(socket) => {
                let $inner = Pin::new(socket);
                $call
            }
            Io::Tls(tls, _) => {
                let $inner = Pin::new(&mut **tls);
                $call
            }
        }
    };
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(socket) => Pin::new(socket).poll_read(cx, buf),
            // End of file without a close_notify is an error here (UnexpectedEof), never an end.
            Self::Tls(tls, life) => Pin::new(&mut **tls).poll_read(cx, buf).map_err(|error| {
                if let Some(cause) = error.get_ref().and_then(|inner| inner.downcast_ref()) {
                    life.note_tls(cause);
                }
                error
            }),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, inner => inner.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, inner => inner.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, inner => inner.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, inner => inner.poll_shutdown(cx))
    }
}
