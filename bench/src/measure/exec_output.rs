//! What a command writes in bulk: how fast, and what it costs gateway and supervisor.

use std::future::Future;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::throughput::GIBIBYTE;
use crate::bounded::{SHORT, within};
use crate::chain::Chain;
use crate::load::{Direction, Flow, GO, Order, Running, Sandbox, command};
use crate::options::Plan;
use crate::results::{Far, Figure, Sample};
use crate::worker::Worker;

/// The same bytes from the target over a stream, then from a command's stdout.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let sandbox = chain.sandbox()?;
    let bytes = plan.sample_bytes;
    let mut sample = Sample::new();

    let stream = sandbox.stream(Order::Send(bytes)).await?;
    let mut flow = Flow::on(stream, Direction::Down, bytes);
    sample.extend(clocked(chain, Far::Target, bytes, flow.run()).await?);
    flow.finish().await?;

    let mut source = source(&sandbox, bytes).await?;
    sample.extend(clocked(chain, Far::Command, bytes, download(&mut source, bytes)).await?);
    let exit = source.finish().await?;
    ensure!(exit.code == 0, "the command's exit code is {}", exit.code);
    Ok(sample)
}

async fn clocked(
    chain: &Chain,
    far: Far,
    bytes: u64,
    work: impl Future<Output = Result<()>>,
) -> Result<[(Figure, f64); 2]> {
    let cpu_before = chain.inner_cpu()?;
    let start = Instant::now();
    work.await?;
    let seconds = start.elapsed().as_secs_f64();
    let spent = chain.inner_cpu()? - cpu_before;
    let gibibytes = bytes as f64 / GIBIBYTE;
    Ok([
        (Figure::Output(far), gibibytes / seconds),
        (Figure::OutputCpu(far), spent / gibibytes),
    ])
}

/// A command that writes as the target does, ready to begin.
async fn source(sandbox: &Sandbox, bytes: u64) -> Result<Running> {
    let own = std::env::current_exe().context("finding this executable")?;
    let arguments = Worker::Source { bytes }.arguments();
    let words = std::iter::once(own.as_os_str()).chain(arguments.iter().map(AsRef::as_ref));
    let argv: Option<Vec<&str>> = words.map(|word| word.to_str()).collect();
    let argv = argv.context("this executable's path is not UTF-8")?;
    let mut source = sandbox.start(command(&argv)).await?;
    source.ready().await?;
    Ok(source)
}

async fn download(source: &mut Running, bytes: u64) -> Result<()> {
    within("telling a command to begin", SHORT, source.send(GO)).await?;
    source.take(bytes).await
}
