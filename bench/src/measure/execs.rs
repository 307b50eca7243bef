//! Commands that end at once, beside what none of them can do without: a process, and a stream.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::bounded::{SHORT, within};
use crate::chain::Chain;
use crate::load::{Order, Sandbox, close};
use crate::options::Plan;
use crate::results::{Abreast, Deed, Figure, Sample};

/// What is run, here and there.
const PROGRAM: &str = "/bin/true";

/// The deeds take turns within a sample, too: their times are added up and divided.
const TURNS: u32 = 4;

/// How often, and how long that took.
#[derive(Default)]
struct Done {
    count: u64,
    seconds: f64,
}

/// Does each deed for the sample's time, one at a time and several at a time.
pub(super) async fn sample(chain: &Chain, plan: &Plan) -> Result<Sample> {
    let sandbox = chain.sandbox()?;
    let mut sample = Sample::new();
    for abreast in Abreast::ALL {
        let workers = match abreast {
            Abreast::One => 1,
            Abreast::Several => plan.exec_workers,
        };
        let mut all = BTreeMap::<Deed, Done>::new();
        for deed in Deed::ALL {
            once(deed, &sandbox).await?; // the first one pays for the connection
        }
        for _ in 0..TURNS {
            for deed in Deed::ALL {
                let done = all.entry(deed).or_default();
                turn(deed, &sandbox, workers, plan.connect_time / TURNS, done).await?;
            }
        }
        let each = |deed: &Deed| all[deed].seconds / all[deed].count as f64;
        for deed in &Deed::ALL {
            sample.push((Figure::Deeds(*deed, abreast), 1.0 / each(deed)));
        }
        let share = each(&Deed::Exec) / (each(&Deed::Spawn) + each(&Deed::Stream));
        sample.push((Figure::ExecShare(abreast), share));
    }
    Ok(sample)
}

/// Does it over and over in each worker until the time is over; the last ones are waited for.
async fn turn(
    deed: Deed,
    sandbox: &Sandbox,
    workers: usize,
    time: Duration,
    done: &mut Done,
) -> Result<()> {
    let start = Instant::now();
    let mut working = JoinSet::new();
    for _ in 0..workers {
        working.spawn(repeat(deed, sandbox.clone(), start + time));
    }
    let mut count = 0;
    while let Some(one) = working.join_next().await {
        count += one??;
    }
    ensure!(count > 0, "nothing was done within {time:?}");
    done.count += count;
    done.seconds += start.elapsed().as_secs_f64();
    Ok(())
}

async fn repeat(deed: Deed, sandbox: Sandbox, end: Instant) -> Result<u64> {
    let mut count = 0;
    while Instant::now() < end {
        once(deed, &sandbox).await?;
        count += 1;
    }
    Ok(count)
}

async fn once(deed: Deed, sandbox: &Sandbox) -> Result<()> {
    match deed {
        Deed::Spawn => within("a local spawn", SHORT, spawn()).await,
        Deed::Stream => close(sandbox.stream(Order::Hold).await?).await,
        Deed::Exec => sandbox.run(&[PROGRAM]).await,
    }
}

/// Three pipes, both outputs read to their ends, the exit awaited: as the sandbox has to.
async fn spawn() -> Result<()> {
    let child = Command::new(PROGRAM)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child.wait_with_output().await?;
    let silent = output.stdout.is_empty() && output.stderr.is_empty();
    ensure!(output.status.success() && silent, "{output:?}");
    Ok(())
}
