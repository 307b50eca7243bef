//! Streams that do nothing: how much memory each takes, and how many there may be.

use std::net::SocketAddr;

use anyhow::{Result, ensure};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::chain::Chain;
use crate::load::{Order, open, round_trips};
use crate::machine::descriptor_limit;
use crate::options::Plan;
use crate::process::settled;
use crate::results::{Figure, Sample};
use crate::subject::Subject;

/// Streams opened at a time.
const BATCH: usize = 64;

/// Files a process has open beside its streams.
const OTHER_FILES: usize = 500;

/// Opens idle streams on a fresh chain, then uses one more.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let middle = chain.middle()?;
    drop(hold(chain.entry(0), BATCH).await?);
    let before = settled(middle).await?;
    let streams = hold(chain.entry(0), count(chain.subject, plan)).await?;
    let after = settled(middle).await?;
    round_trips(chain.entry(0), 10).await?;
    ensure!(still_open(&streams), "an idle stream ended");

    let grown = after.proportional - before.proportional;
    let mut sample = vec![(Figure::StreamMemory, grown / streams.len() as f64)];
    if chain.subject != Subject::Plain {
        sample.push((Figure::ConcurrentStreams, streams.len() as f64));
    }
    Ok(sample)
}

/// A plain relay needs two descriptors for each, and takes much memory; a tenth tells enough.
fn count(subject: Subject, plan: &Plan) -> usize {
    let share = if subject == Subject::Plain { 10 } else { 1 };
    (plan.idle_streams / share).min(descriptor_limit().saturating_sub(OTHER_FILES))
}

async fn hold(entry: SocketAddr, count: usize) -> Result<Vec<TcpStream>> {
    let mut held = Vec::with_capacity(count);
    while held.len() < count {
        let mut opening = JoinSet::new();
        for _ in 0..BATCH.min(count - held.len()) {
            opening.spawn(open(entry, Order::Hold));
        }
        while let Some(stream) = opening.join_next().await {
            held.push(stream??);
        }
    }
    Ok(held)
}

/// Nobody wrote to them and nobody closed them.
fn still_open(streams: &[TcpStream]) -> bool {
    let quiet = |stream: &TcpStream| {
        let read = stream.try_read(&mut [0]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    streams.iter().all(quiet)
}
