//! Supervisor sessions that do nothing: how much memory each takes.

use anyhow::{Context, Result};

use crate::chain::Chain;
use crate::options::Plan;
use crate::process::{Process, settled};
use crate::results::{Figure, Sample};
use crate::subject::Subject;
use crate::worker::Worker;

/// Opens idle sessions at the gateway of a fresh chain.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let middle = chain.middle()?;
    let certificates = chain.certificates();
    let worker = Worker::Sessions {
        gateway: chain.gateway.context("there is no gateway")?,
        count: plan.idle_sessions,
        certificates: (chain.subject == Subject::TidegateTls).then(|| certificates.clone()),
    };
    let before = settled(middle).await?;
    let (driver, _) = Process::start_worker(&worker, &certificates).await?;
    let after = settled(middle).await?;
    drop(driver);
    let grown = after.proportional - before.proportional;
    Ok(vec![(
        Figure::SessionMemory,
        grown / plan.idle_sessions as f64,
    )])
}
