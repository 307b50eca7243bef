//! The end that is a socket: TCP, or a Unix socket where there are any.
//!
//! A socket that has a stream on its other side must never end cleanly by accident. So it is made
//! to reset on close from the start ([`harden`]), also when this process is killed, and that is
//! undone only when both directions have finished.

use std::io::{self, ErrorKind, IoSlice, Read as _};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use socket2::{SockRef, TcpKeepalive};
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::{End as StreamEnd, Reason};
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::{Rank, Side};
use tidegate_transport::Buffered;
use tokio::io::Interest;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;

use crate::buffer::Appetite;
use crate::end::{End, Opened, Read};
use crate::queue::Queue;

/// Whether the system tells of new bytes although older ones were not read to the end.
const EDGE_TRIGGERED: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// How many pieces one write may gather.
const GATHER: usize = 16;
/// Silence after which a connection is probed, so that a host that was cut off is noticed.
const PROBE_AFTER: Duration = Duration::from_secs(60);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

/// Prepares a TCP socket for a stream: it resets when it is dropped, sends small writes at once and
/// notices a host that is gone. A socket that is yet to be connected is best prepared before, since
/// the attempt may be given up after it has succeeded.
///
/// # Errors
///
/// When the socket does not take an option; it is then not fit for use.
pub fn harden<'a, S>(socket: &'a S) -> io::Result<()>
where
    SockRef<'a>: From<&'a S>,
{
    let socket = SockRef::from(socket);
    socket.set_linger(Some(Duration::ZERO))?;
    socket.set_tcp_nodelay(true)?;
    let probes = TcpKeepalive::new().with_time(PROBE_AFTER);
    #[cfg(any(target_os = "linux", target_os = "macos", windows))]
    let probes = probes.with_interval(PROBE_EVERY).with_retries(PROBES);
    socket.set_tcp_keepalive(&probes)
}

/// What a [`SocketEnd`] is plugged into.
#[derive(Clone, Debug)]
pub enum Plug {
    /// A TCP connection, hardened by [`harden`].
    Tcp(Arc<TcpStream>),
    /// A Unix socket, which knows no reset: its peer sees the end of file.
    #[cfg(unix)]
    Unix(Arc<UnixStream>),
}

/// Runs the same expression on whatever the plug holds.
macro_rules! on {
    ($plug:expr, $stream:ident => $body:expr) => {
        match $plug {
            Plug::Tcp($stream) => $body,
            #[cfg(unix)]
            Plug::Unix($stream) => $body,
        }
    };
}

type Broken = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A connected socket as an end of a tunnel.
pub struct SocketEnd {
    side: Side,
    plug: Option<Plug>,
    appetite: Appetite,
    queue: Queue,
    command: Option<Write>,
    taken: usize,
    announced: bool,
    read_ended: bool,
    /// Watches for a reset while nobody reads; made when first needed.
    watch: Option<Broken>,
}

impl std::fmt::Debug for SocketEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketEnd")
            .field("side", &self.side)
            .field("plug", &self.plug)
            .finish()
    }
}

impl SocketEnd {
    /// The end on `side` of its tunnel.
    pub fn new(side: Side, plug: Plug, total: &Arc<Buffered>) -> Self {
        Self {
            side,
            plug: Some(plug),
            appetite: Appetite::default(),
            queue: Queue::new(Arc::clone(total)),
            command: None,
            taken: 0,
            announced: false,
            read_ended: false,
            watch: None,
        }
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        let Some(plug) = &self.plug else {
            return Poll::Pending;
        };
        loop {
            if let Err(error) = ready!(on!(plug, stream => stream.poll_read_ready(cx))) {
                return Poll::Ready(self.broken(&error));
            }
            let read = self.appetite.read(|buffer| read_once(plug, buffer));
            match read {
                Ok(data) if data.is_empty() => {
                    self.read_ended = true;
                    return Poll::Ready(Read::End);
                }
                Ok(data) => return Poll::Ready(Read::Data(data)),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Poll::Ready(self.broken(&error)),
            }
        }
    }

    /// Notices a reset although nobody reads. An end of file behind unread bytes is none.
    fn poll_broken(&mut self, cx: &mut Context<'_>) -> Poll<Read> {
        let Some(plug) = &self.plug else {
            return Poll::Pending;
        };
        let watch = self.watch.get_or_insert_with(|| watch(plug.clone()));
        ready!(watch.as_mut().poll(cx));
        self.watch = None;
        let error = on!(plug, stream => SockRef::from(&**stream).take_error());
        let error = error
            .ok()
            .flatten()
            .unwrap_or_else(|| ErrorKind::ConnectionReset.into());
        Poll::Ready(self.broken(&error))
    }

    fn broken(&mut self, error: &io::Error) -> Read {
        let (rank, end) = self.reset_by_peer(error);
        Read::Ended(rank, end)
    }

    fn reset_by_peer(&mut self, error: &io::Error) -> (Rank, StreamEnd) {
        self.plug = None;
        self.watch = None;
        let (origin, reason, who) = match self.side {
            Side::Downstream => (
                tidegate_lifecycle::Origin::Client,
                Reason::ClientReset,
                "local program",
            ),
            Side::Upstream => (
                tidegate_lifecycle::Origin::Target,
                Reason::TargetReset,
                "target",
            ),
        };
        let message = format!("the {who} broke the connection: {error}");
        (Rank::Typed, StreamEnd::new(origin, reason, message))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.queue.is_empty() {
            let Some(plug) = &self.plug else {
                self.queue.clear();
                break;
            };
            ready!(on!(plug, stream => stream.poll_write_ready(cx)))?;
            let mut slots = [IoSlice::new(&[]); GATHER];
            let lent = self.queue.slices(&mut slots);
            match on!(plug, stream => stream.try_write_vectored(&slots[..lent])) {
                Ok(written) => {
                    self.queue.advance(written);
                    self.taken += written;
                }
                Err(error) if is_transient(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn shut_down(&self) -> io::Result<()> {
        let Some(plug) = &self.plug else {
            return Ok(());
        };
        on!(plug, stream => SockRef::from(&**stream).shutdown(std::net::Shutdown::Write))
    }

    fn close_in_peace(&mut self) {
        self.watch = None;
        if let Some(Plug::Tcp(stream)) = self.plug.take() {
            // A socket that is gone cannot take the option, and needs none.
            let _ = SockRef::from(&*stream).set_linger(None);
        }
    }
}

impl End for SocketEnd {
    type Item = Bytes;

    fn poll_read(&mut self, room: bool, cx: &mut Context<'_>) -> Poll<Read> {
        if !std::mem::replace(&mut self.announced, true) {
            return Poll::Ready(Read::Opened(Opened::on(Capabilities::STREAM)));
        }
        if room && !self.read_ended {
            self.poll_data(cx)
        } else {
            self.poll_broken(cx)
        }
    }

    fn queue(&mut self, data: Bytes) {
        self.queue.push(data);
    }

    fn command(&mut self, write: Write) {
        match write {
            Write::Reset(_) | Write::Status(_) => {
                self.queue.clear();
                self.command = None;
                self.watch = None;
                self.plug = None;
            }
            Write::Close if self.queue.is_empty() => self.close_in_peace(),
            Write::EndStream | Write::Close => self.command = Some(write),
            Write::FinFrame | Write::Ok | Write::Keepalive => {}
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), (Rank, StreamEnd)>> {
        let written = match ready!(self.poll_write(cx)) {
            Ok(()) if self.command.take() == Some(Write::EndStream) => self.shut_down(),
            other => other,
        };
        Poll::Ready(written.map_err(|error| self.reset_by_peer(&error)))
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
        self.plug = None;
        Poll::Ready(())
    }

    fn cut(&mut self) {
        self.plug = None;
    }
}

/// Reads once. A read that does not fill the buffer has emptied the socket, so that readiness is
/// given back without asking the kernel again; what arrives later brings a new event, and an end of
/// file behind these bytes stays readable.
fn read_once(plug: &Plug, buffer: &mut [u8]) -> io::Result<usize> {
    let mut short = None;
    let read = on!(plug, stream => stream.try_io(Interest::READABLE, || {
        let len = (&*SockRef::from(&**stream)).read(buffer)?;
        if EDGE_TRIGGERED && (1..buffer.len()).contains(&len) {
            short = Some(len);
            return Err(ErrorKind::WouldBlock.into());
        }
        Ok(len)
    }));
    short.map_or(read, Ok)
}

fn watch(plug: Plug) -> Broken {
    Box::pin(async move {
        // An error of the watch itself is one of the socket's.
        let _ = on!(&plug, stream => stream.ready(Interest::ERROR).await);
    })
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
