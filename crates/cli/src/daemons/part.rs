//! The hidden `tidegate demo-part`: one process of the demonstration, which can be killed.

use std::net::SocketAddr;

use clap::Subcommand;
use serde_json::json;
use tidegate_client::SandboxName;
use tidegate_supervisor::Phase;
use tokio::io::AsyncReadExt;
use tokio_util::sync::CancellationToken;

use super::start;
use crate::failure::{Failure, Trouble};
use crate::output::Console;

/// One process of the demonstration; it ends with its stdin
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    part: Part,
    /// The sandbox
    #[arg(long, value_parser = SandboxName::parse, default_value = "demo")]
    sandbox: SandboxName,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// A gateway
    Gateway {
        /// Where it listens
        listen: SocketAddr,
    },
    /// A supervisor
    Supervisor {
        /// The gateway's URL
        url: String,
    },
}

pub(super) async fn run(args: Args, console: &Console) -> Result<(), Failure> {
    let Args { part, sandbox } = args;
    tokio::select! {
        done = async {
            match part {
                Part::Gateway { listen } => gateway(listen, sandbox, console).await,
                Part::Supervisor { url } => supervisor(url, sandbox, console).await,
            }
        } => done,
        () = parent_gone() => Ok(()),
    }
}

async fn gateway(
    listen: SocketAddr,
    sandbox: SandboxName,
    console: &Console,
) -> Result<(), Failure> {
    let gateway = start::gateway(listen, sandbox).await?;
    console.json(&json!({ "listening": gateway.local_addr().to_string() }))?;
    gateway.run(CancellationToken::new()).await;
    Ok(())
}

async fn supervisor(url: String, sandbox: SandboxName, console: &Console) -> Result<(), Failure> {
    let supervisor = start::supervisor(url, sandbox)?;
    let mut phase = supervisor.phase();
    let ready = async {
        // The phase outlives whoever waits for it.
        if phase.wait_for(Phase::is_live).await.is_ok() {
            console.json(&json!({ "ready": true }))?;
        }
        std::future::pending().await
    };
    tokio::select! {
        stopped = supervisor.run(CancellationToken::new()) => {
            stopped.map_err(|reason| Failure::local(Trouble::System, reason, ""))
        }
        failed = ready => failed,
    }
}

/// The demonstration holds the other end of stdin: when it is killed, its parts end too.
async fn parent_gone() {
    let mut nothing = [0];
    while matches!(tokio::io::stdin().read(&mut nothing).await, Ok(1)) {}
}
