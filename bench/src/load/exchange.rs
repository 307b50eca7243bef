//! Single bytes: round trips, and connections that live for one.

use std::net::SocketAddr;
use std::time::Instant;

use anyhow::{Result, ensure};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::order::{Order, open};
use crate::bounded::{LONG, SHORT, within};

/// Exchanges one byte `count` times over one stream, after a tenth as many that do not count.
/// Returns each round trip's microseconds.
pub(crate) async fn round_trips(entry: SocketAddr, count: usize) -> Result<Vec<f64>> {
    round_trips_on(open(entry, Order::Echo).await?, count).await
}

/// The same on a stream whose target echoes.
pub(crate) async fn round_trips_on<S>(mut stream: S, count: usize) -> Result<Vec<f64>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut times = Vec::with_capacity(count);
    within("round trips", LONG, async {
        for trip in 0..count + count / 10 {
            let sent = trip as u8;
            let start = Instant::now();
            stream.write_u8(sent).await?;
            let got = stream.read_u8().await?;
            if trip >= count / 10 {
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
            ensure!(got == sent, "byte {sent} came back as {got}");
        }
        stream.shutdown().await?;
        Ok(())
    })
    .await?;
    Ok(times)
}

/// Until `end`: connects, exchanges one byte, closes, waits until both directions have ended.
/// Returns how often.
pub(crate) async fn connect_and_close(entry: SocketAddr, end: Instant) -> Result<u64> {
    let mut count = 0;
    while Instant::now() < end {
        close(open(entry, Order::Hold).await?).await?;
        count += 1;
    }
    Ok(count)
}

/// Closes a stream and waits until both directions have ended.
pub(crate) async fn close<S>(mut stream: S) -> Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    within("closing a stream", SHORT, async {
        stream.shutdown().await?;
        ensure!(stream.read(&mut [0]).await? == 0, "a byte after the answer");
        Ok(())
    })
    .await
}
