//! Commands that do nothing: how much memory the supervisor takes for each.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::chain::Chain;
use crate::load::command;
use crate::options::Plan;
use crate::process::{Family, settled_sum};
use crate::results::{Figure, Sample};

/// What a command's helpers take to end behind it.
const GONE: Duration = Duration::from_millis(500);

/// Starts idle commands in a fresh chain's sandbox.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let sandbox = chain.sandbox()?;
    let supervisor = chain.exit()?;
    sandbox.run(&["/bin/true"]).await?; // what the first command brings stays
    tokio::time::sleep(GONE).await;
    let before = settled_sum(|| Ok(Family::of(supervisor)?.same)).await?;
    let mut commands = Vec::with_capacity(plan.idle_execs);
    for _ in 0..plan.idle_execs {
        commands.push(sandbox.start(command(&["sleep", "3600"])).await?);
    }
    let after = settled_sum(|| Ok(Family::of(supervisor)?.same)).await?;
    let running = Family::of(supervisor)?.others.len();
    ensure!(
        running == commands.len(),
        "{running} of {} commands run",
        commands.len()
    );
    for command in commands {
        command.cancel().await?;
    }
    let grown = after.proportional - before.proportional;
    Ok(vec![(Figure::ExecMemory, grown / plan.idle_execs as f64)])
}
