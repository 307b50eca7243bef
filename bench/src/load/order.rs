//! What the load generator orders from the target: the first bytes of each connection.
//!
//! ```text
//! generator                         target
//!    kind (1 byte) ────────────────▶
//!    [count (8 bytes, big endian)] ▶
//!    ◀──────────────── the same kind: the whole path is open
//! ```
//!
//! What follows depends on the kind.

use std::io;
use std::net::SocketAddr;

use anyhow::{Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::bounded::{SHORT, within};

/// Both ends write and read in pieces of this size.
pub(crate) const CHUNK: usize = 256 * 1024;

/// The kernel's buffer at both ends of a stream that stalls. Left to grow, a hundred of them fill the
/// machine's whole TCP memory, and then it is the kernel that is measured.
pub(crate) const STALLED_BUFFER: u32 = 64 * 1024;

/// Sent by the generator when a [`Order::Send`] may begin: opening is not part of the time.
pub(crate) const GO: u8 = b'!';

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// After [`GO`] the target sends so many bytes, then FIN.
    Send(u64),
    /// The target reads so many bytes, then answers with the count (8 bytes).
    Receive(u64),
    /// Each byte comes back.
    Echo,
    /// Nothing more happens until the generator's FIN.
    Hold,
    /// The target sends for ever.
    Endless,
    /// The target answers with a [`Tally`].
    Tally,
}

impl Order {
    const fn kind(self) -> u8 {
        match self {
            Self::Send(_) => b's',
            Self::Receive(_) => b'r',
            Self::Echo => b'e',
            Self::Hold => b'h',
            Self::Endless => b'w',
            Self::Tally => b't',
        }
    }

    /// Reads an order and confirms it.
    pub(crate) async fn accept(stream: &mut TcpStream) -> io::Result<Self> {
        let kind = stream.read_u8().await?;
        let order = match kind {
            b's' => Self::Send(stream.read_u64().await?),
            b'r' => Self::Receive(stream.read_u64().await?),
            b'e' => Self::Echo,
            b'h' => Self::Hold,
            b'w' => Self::Endless,
            b't' => Self::Tally,
            _ => return Err(io::ErrorKind::InvalidData.into()),
        };
        stream.write_u8(kind).await?;
        Ok(order)
    }

    /// Orders, and waits until the target confirmed.
    pub(super) async fn place<S>(self, stream: &mut S) -> Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut bytes = vec![self.kind()];
        if let Self::Send(count) | Self::Receive(count) = self {
            bytes.extend(count.to_be_bytes());
        }
        stream.write_all(&bytes).await?;
        let answer = stream.read_u8().await?;
        if answer != self.kind() {
            bail!("the target confirmed {answer:#x} for {self:?}");
        }
        Ok(())
    }
}

/// Opens a connection at `entry`, orders, and waits until the target confirmed.
pub(crate) async fn open(entry: SocketAddr, order: Order) -> Result<TcpStream> {
    open_on(TcpSocket::new_v4()?, entry, order).await
}

/// The same on a socket that has been prepared.
pub(super) async fn open_on(
    socket: TcpSocket,
    entry: SocketAddr,
    order: Order,
) -> Result<TcpStream> {
    within("opening a stream", SHORT, async {
        let mut stream = socket.connect(entry).await?;
        stream.set_nodelay(true)?;
        order.place(&mut stream).await?;
        anyhow::Ok(stream)
    })
    .await
}

/// What the target counted since its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Bytes of all endless sends together.
    pub(crate) endless_bytes: u64,
}

impl Tally {
    /// Asks the target itself, not through a contender.
    pub(crate) async fn of(target: SocketAddr) -> Result<Self> {
        let mut stream = open(target, Order::Tally).await?;
        let endless_bytes = within("reading a tally", SHORT, stream.read_u64()).await?;
        Ok(Self { endless_bytes })
    }
}
