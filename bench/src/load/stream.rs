//! Bulk data over one stream, every byte counted.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::order::{CHUNK, GO, Order, open};
use crate::bounded::{LONG, SHORT, within};

/// Which way the bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Direction {
    /// From the target to the client.
    Down,
    /// From the client to the target.
    Up,
}

impl Direction {
    /// Both of them.
    pub(crate) const ALL: [Self; 2] = [Self::Down, Self::Up];

    /// The name in tables and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

/// An open stream that is about to carry a known number of bytes.
pub(crate) struct Flow<S = TcpStream> {
    stream: S,
    direction: Direction,
    bytes: u64,
    buffer: Vec<u8>,
}

impl Flow {
    /// Opens the whole path; nothing flows yet.
    pub(crate) async fn open(entry: SocketAddr, direction: Direction, bytes: u64) -> Result<Self> {
        let order = match direction {
            Direction::Down => Order::Send(bytes),
            Direction::Up => Order::Receive(bytes),
        };
        Ok(Self::on(open(entry, order).await?, direction, bytes))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Flow<S> {
    /// The same on a stream whose target has confirmed the order.
    pub(crate) fn on(stream: S, direction: Direction, bytes: u64) -> Self {
        Self {
            stream,
            direction,
            bytes,
            buffer: vec![0x5a; CHUNK],
        }
    }

    /// Moves all bytes; returns when the last one has arrived at its reader.
    pub(crate) async fn run(&mut self) -> Result<()> {
        let what = format!("moving {} bytes {}", self.bytes, self.direction.name());
        match self.direction {
            Direction::Down => within(what, LONG, self.download()).await,
            Direction::Up => within(what, LONG, self.upload()).await,
        }
    }

    async fn download(&mut self) -> Result<()> {
        self.stream.write_u8(GO).await?;
        let mut left = self.bytes;
        while left > 0 {
            let count = self.stream.read(&mut self.buffer).await? as u64;
            ensure!(count > 0, "the stream ended {left} bytes early");
            ensure!(count <= left, "{} bytes too many", count - left);
            left -= count;
        }
        Ok(())
    }

    async fn upload(&mut self) -> Result<()> {
        let mut left = self.bytes;
        while left > 0 {
            let count = left.min(self.buffer.len() as u64);
            self.stream
                .write_all(&self.buffer[..count as usize])
                .await?;
            left -= count;
        }
        let arrived = self.stream.read_u64().await?;
        ensure!(
            arrived == self.bytes,
            "{arrived} of {} bytes arrived",
            self.bytes
        );
        Ok(())
    }

    /// Ends both directions; the target must have nothing more to say.
    pub(crate) async fn finish(mut self) -> Result<()> {
        within("finishing a stream", SHORT, async {
            self.stream.shutdown().await?;
            let extra = self.stream.read(&mut self.buffer).await?;
            ensure!(extra == 0, "{extra} bytes after the last one");
            Ok(())
        })
        .await
    }
}
