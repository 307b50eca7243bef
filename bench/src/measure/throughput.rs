//! Bulk data: how fast, and what it costs each process.

use std::time::Instant;

use anyhow::Result;
use tokio::task::JoinSet;

use crate::chain::Chain;
use crate::load::{Direction, Flow};
use crate::options::Plan;
use crate::results::{Figure, Load, Sample};
use crate::subject::Role;

pub(super) const GIBIBYTE: f64 = (1_u64 << 30) as f64;

/// Moves the sample's bytes down, then up.
pub(super) async fn sample(chain: &Chain, load: Load, plan: &Plan) -> Result<Sample> {
    let streams = match load {
        Load::Single => 1,
        Load::Parallel | Load::Tunnels => plan.parallel_streams,
    };
    let mut sample = Sample::new();
    for direction in Direction::ALL {
        let bytes = plan.sample_bytes / streams as u64;
        let flows = open(chain, direction, streams, bytes).await?;
        let cpu_before = chain.cpu()?;
        let start = Instant::now();
        let flows = run(flows).await?;
        let seconds = start.elapsed().as_secs_f64();
        let cpu_after = chain.cpu()?;
        finish(flows).await?;

        let gibibytes = (bytes * streams as u64) as f64 / GIBIBYTE;
        sample.push((Figure::Throughput(load, direction), gibibytes / seconds));
        for (role, after) in cpu_after {
            let spent = after - cpu_before[&role];
            sample.push((Figure::Cpu(load, direction, role), spent / gibibytes));
            if load == Load::Tunnels && role == Role::Middle {
                sample.push((Figure::Busy(load, direction), spent / seconds));
            }
        }
    }
    Ok(sample)
}

/// GiB/s of one stream from the target.
pub(super) async fn single_down(chain: &Chain, bytes: u64) -> Result<f64> {
    let mut flow = Flow::open(chain.entry(0), Direction::Down, bytes).await?;
    let start = Instant::now();
    flow.run().await?;
    let seconds = start.elapsed().as_secs_f64();
    flow.finish().await?;
    Ok(bytes as f64 / GIBIBYTE / seconds)
}

async fn open(
    chain: &Chain,
    direction: Direction,
    streams: usize,
    bytes: u64,
) -> Result<Vec<Flow>> {
    let mut flows = Vec::with_capacity(streams);
    for index in 0..streams {
        flows.push(Flow::open(chain.entry(index), direction, bytes).await?);
    }
    Ok(flows)
}

async fn run(flows: Vec<Flow>) -> Result<Vec<Flow>> {
    let mut running = JoinSet::new();
    for mut flow in flows {
        running.spawn(async move { flow.run().await.map(|()| flow) });
    }
    let mut done = Vec::with_capacity(running.len());
    while let Some(flow) = running.join_next().await {
        done.push(flow??);
    }
    Ok(done)
}

async fn finish(flows: Vec<Flow>) -> Result<()> {
    for flow in flows {
        flow.finish().await?;
    }
    Ok(())
}
