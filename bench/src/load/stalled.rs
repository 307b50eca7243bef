//! Streams whose target writes for ever and whose client never reads.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use tokio::net::{TcpSocket, TcpStream};

use super::order::{Order, STALLED_BUFFER, Tally, open_on};
use crate::bounded::{LONG, within};

/// Stalled streams; dropping them resets them.
pub(crate) struct Stalled {
    _streams: Vec<TcpStream>,
}

impl Stalled {
    /// Opens `count` of them and waits until the target cannot write to any.
    pub(crate) async fn open(entry: SocketAddr, target: SocketAddr, count: usize) -> Result<Self> {
        let mut streams = Vec::with_capacity(count);
        for _ in 0..count {
            let socket = TcpSocket::new_v4()?;
            socket.set_recv_buffer_size(STALLED_BUFFER)?;
            streams.push(open_on(socket, entry, Order::Endless).await?);
        }
        within("waiting for streams to stall", LONG, until_still(target)).await?;
        Ok(Self { _streams: streams })
    }
}

/// Returns once the target has written nothing for a second.
async fn until_still(target: SocketAddr) -> Result<()> {
    let mut before = Tally::of(target).await?;
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let after = Tally::of(target).await?;
        if before == after {
            return Ok(());
        }
        before = after;
    }
}
