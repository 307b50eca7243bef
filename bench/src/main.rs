//! Compares Tidegate with plain relays and other tunnels, in one run on one machine.
//!
//! Every contender ([`subject::Subject`]) is started as real processes on loopback and stays up;
//! each measure ([`measure::Measure`]) then visits all of them in turn, round after round, so that
//! whatever else the machine does hits all alike. What counts are the medians of same-round ratios.
//!
//! The same binary is also each of the small programs the contenders need ([`worker::Worker`]):
//! relay, target and the driver of idle sessions are this executable under a hidden subcommand.

mod bounded;
mod chain;
mod goal;
mod load;
mod machine;
mod measure;
mod options;
mod process;
mod programs;
mod report;
mod results;
mod run;
mod stats;
mod subject;
mod worker;

use std::process::ExitCode;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};

use crate::options::Options;
use crate::worker::Worker;

/// Compares Tidegate with plain relays and other tunnels.
#[derive(Parser)]
#[command(version, about, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    worker: Option<Worker>,
}

fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    machine::raise_descriptor_limit()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        match arguments.worker {
            Some(worker) => worker.run().await.map(|()| ExitCode::SUCCESS),
            None => interruptible(&arguments.options).await,
        }
    })
}

/// Runs the bench; a signal drops it, and dropping it ends every process it started.
async fn interruptible(options: &Options) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        code = run::run(options) => code,
        _ = terminate.recv() => Ok(ExitCode::from(143)),
        _ = interrupt.recv() => Ok(ExitCode::from(130)),
    }
}
