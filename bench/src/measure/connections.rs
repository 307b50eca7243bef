//! Short connections, several in the making at a time.

use std::time::Instant;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;

use crate::chain::Chain;
use crate::load::connect_and_close;
use crate::options::Plan;
use crate::results::{Figure, Sample};

/// Connects and closes for the sample's time.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let cpu_before = chain.cpu()?;
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for index in 0..plan.connect_workers {
        workers.spawn(connect_and_close(
            chain.entry(index),
            start + plan.connect_time,
        ));
    }
    let mut count = 0;
    while let Some(done) = workers.join_next().await {
        count += done??;
    }
    let seconds = start.elapsed().as_secs_f64();
    ensure!(count > 0, "no connection within {seconds:.1} s");

    let mut sample = vec![(Figure::Connections, count as f64 / seconds)];
    for (role, after) in chain.cpu()? {
        let spent = after - cpu_before[&role];
        sample.push((Figure::ConnectionCpu(role), spent * 1e3 / count as f64));
    }
    Ok(sample)
}
