//! One stream in the hands of a program.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use tidegate_bridge::{FrameEnd, Handle, Opened, Outcome, Tunnel};
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::id::{SandboxName, StreamId};
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::{Capabilities, Target};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::client::Client;
use crate::hand::{Halves, Hand};

/// The most that one write takes.
const WRITE: usize = 64 * 1024;

/// An open stream to a target inside a sandbox.
///
/// Bytes go both ways, each way ends on its own: [`Stream::finish`] is FIN, and the answer still
/// arrives. A stream that breaks is an error at the next read or write, never a short end of file;
/// [`Stream::closed`] says why. Dropping it aborts: the target sees a reset.
///
/// It is also [`AsyncRead`] and [`AsyncWrite`], where `shutdown` is [`Stream::finish`]; the error of
/// a broken stream then carries its [`End`] as the inner error.
pub struct Stream {
    tunnel: Box<Tunnel<Hand, FrameEnd>>,
    halves: Arc<Halves>,
    handle: Handle,
    opened: Opened,
    outcome: Option<Outcome>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not what it holds: that is its user's.
        f.debug_struct("Stream")
            .field("opened", &self.opened)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) async fn open(
        client: &Client,
        sandbox: &SandboxName,
        target: Target,
    ) -> Result<Self, End> {
        let mut others = client.gateways();
        loop {
            let opened = Self::open_once(client, sandbox, target.clone()).await;
            others -= 1;
            match opened {
                // Nothing was sent but the wish for a path, which never opened: another gateway may be
                // asked for it.
                Err(end) if end.reason == Reason::GatewayDraining && others > 0 => {
                    client.pass_over(client.current());
                }
                opened => return opened,
            }
        }
    }

    async fn open_once(
        client: &Client,
        sandbox: &SandboxName,
        target: Target,
    ) -> Result<Self, End> {
        let handle = Handle::new(Instant::now());
        let hand = Hand::new(client.buffered());
        let limits = StreamLimits::default();
        let tunnel = client
            .tunnel(sandbox, target, hand, limits, handle.clone())
            .await?;
        let mut tunnel = Box::new(tunnel);
        match tunnel.open().await {
            Ok(opened) => Ok(Self {
                tunnel,
                halves: Arc::default(),
                handle,
                opened,
                outcome: None,
            }),
            Err(outcome) => Err(cause_of(&outcome)),
        }
    }

    /// The name the gateway gave the stream, for `streams close`.
    pub const fn id(&self) -> Option<&StreamId> {
        self.opened.stream.as_ref()
    }

    /// What the whole path can promise.
    pub const fn path(&self) -> Capabilities {
        self.opened.path
    }

    /// Sends all of `data`, at the target's pace.
    ///
    /// # Errors
    ///
    /// Why the stream ended.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: a part of the data may have been sent.
    pub async fn send(&mut self, mut data: &[u8]) -> Result<(), End> {
        while !data.is_empty() {
            let sent = std::future::poll_fn(|cx| self.poll_send(data, cx)).await?;
            data = &data[sent..];
        }
        std::future::poll_fn(|cx| self.poll_sent(cx)).await
    }

    /// Says FIN: no more bytes from here. What the target sends still arrives.
    ///
    /// # Errors
    ///
    /// Why the stream ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: FIN is said once.
    pub async fn finish(&mut self) -> Result<(), End> {
        self.tunnel.downstream().finish();
        std::future::poll_fn(|cx| self.poll_sent(cx)).await
    }

    /// The next bytes of the target, at most 64 KiB; none after its FIN.
    ///
    /// # Errors
    ///
    /// Why the stream was cut before the target's FIN.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no byte is lost.
    pub async fn recv(&mut self) -> Result<Option<Bytes>, End> {
        std::future::poll_fn(|cx| self.poll_recv(WRITE, cx)).await
    }

    /// Aborts the stream: the target sees a reset.
    pub fn reset(self) {
        let message = "the program reset its stream";
        self.handle
            .close(End::new(Origin::Client, Reason::ClientCancelled, message));
    }

    /// Waits until the stream has ended on the whole path. Bytes that arrive meanwhile must be read
    /// for it to end: call this after [`Stream::recv`] said that there are none.
    ///
    /// # Errors
    ///
    /// Why it did not finish.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn closed(&mut self) -> Result<(), End> {
        std::future::poll_fn(|cx| {
            let waker = self.halves.reads(cx);
            self.drive(&mut Context::from_waker(&waker));
            match &self.outcome {
                None => Poll::Pending,
                Some(outcome) if outcome.end.is_none() => Poll::Ready(Ok(())),
                Some(outcome) => Poll::Ready(Err(cause_of(outcome))),
            }
        })
        .await
    }

    fn poll_recv(&mut self, max: usize, cx: &Context<'_>) -> Poll<Result<Option<Bytes>, End>> {
        let waker = self.halves.reads(cx);
        let mut cx = Context::from_waker(&waker);
        self.drive(&mut cx);
        if let Some(data) = self.tunnel.downstream().take(max) {
            // What was taken gives the peer credit.
            self.drive(&mut cx);
            return Poll::Ready(Ok(Some(data)));
        }
        if self.tunnel.downstream().is_complete() {
            return Poll::Ready(Ok(None));
        }
        match &self.outcome {
            Some(outcome) => Poll::Ready(Err(cause_of(outcome))),
            None => Poll::Pending,
        }
    }

    fn poll_send(&mut self, data: &[u8], cx: &Context<'_>) -> Poll<Result<usize, End>> {
        let waker = self.halves.writes(cx);
        let mut cx = Context::from_waker(&waker);
        self.drive(&mut cx);
        if let Some(outcome) = &self.outcome {
            return Poll::Ready(Err(cause_of(outcome)));
        }
        let len = data.len().min(WRITE);
        if !self.tunnel.downstream().give(&data[..len]) {
            return Poll::Pending;
        }
        self.drive(&mut cx);
        Poll::Ready(Ok(len))
    }

    /// Ready when everything given was taken by the tunnel.
    fn poll_sent(&mut self, cx: &Context<'_>) -> Poll<Result<(), End>> {
        let waker = self.halves.writes(cx);
        self.drive(&mut Context::from_waker(&waker));
        if self.tunnel.downstream().is_idle() {
            return Poll::Ready(Ok(()));
        }
        match &self.outcome {
            Some(outcome) => Poll::Ready(Err(cause_of(outcome))),
            None => Poll::Pending,
        }
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if self.outcome.is_none()
            && let Poll::Ready(outcome) = self.tunnel.poll_run(cx)
        {
            self.outcome = Some(outcome);
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(self.get_mut().poll_recv(buffer.remaining(), cx));
        if let Some(data) = read.map_err(io_error)? {
            buffer.put_slice(&data);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().poll_send(data, cx).map_err(io_error)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().poll_sent(cx).map_err(io_error)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        stream.tunnel.downstream().finish();
        stream.poll_sent(cx).map_err(io_error)
    }
}

fn io_error(end: End) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, end)
}

/// Why a stream that did not finish ended. One that finished is written to in vain.
fn cause_of(outcome: &Outcome) -> End {
    match &outcome.end {
        Some(end) => (**end).clone(),
        None => End::new(
            Origin::Client,
            Reason::ClientCancelled,
            "the stream has finished",
        ),
    }
}
