//! Resident memory of a process.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bounded::{SHORT, within};

/// What of a process is resident, in KiB (`/proc/PID/smaps_rollup`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Memory {
    /// Everything, shared pages counted in parts: the figure that is reported.
    pub(crate) proportional: f64,
    /// What is the process's alone and was written to.
    pub(crate) private: f64,
}

impl Memory {
    /// Reads it.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let path = format!("/proc/{pid}/smaps_rollup");
        let text = fs::read_to_string(&path).with_context(|| format!("reading {path}"))?;
        let field = |name| kibibytes(&text, name).with_context(|| format!("no {name} in {path}"));
        Ok(Self {
            proportional: field("Pss:")?,
            private: field("Private_Dirty:")?,
        })
    }

    fn sum(pids: &[u32]) -> Result<Self> {
        let mut sum = Self {
            proportional: 0.0,
            private: 0.0,
        };
        for pid in pids {
            let one = Self::of(*pid)?;
            sum.proportional += one.proportional;
            sum.private += one.private;
        }
        Ok(sum)
    }
}

fn kibibytes(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Reads the memory of `pid` until it has stopped moving: twice within 1 %, half a second apart.
pub(crate) async fn settled(pid: u32) -> Result<Memory> {
    settled_sum(|| Ok(vec![pid])).await
}

/// The same of all processes that `list` names, which must not change either.
pub(crate) async fn settled_sum(list: impl Fn() -> Result<Vec<u32>>) -> Result<Memory> {
    within("waiting for memory to settle", SHORT, async {
        let mut before: Option<(Vec<u32>, Memory)> = None;
        loop {
            let pids = list()?;
            let after = Memory::sum(&pids)?;
            if let Some((listed, before)) = before
                && listed == pids
                && (after.private - before.private).abs() <= before.private / 100.0
            {
                return anyhow::Ok(after);
            }
            before = Some((pids, after));
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_known() {
        let memory = Memory::of(std::process::id()).unwrap();
        assert!(
            memory.proportional > 0.0 && memory.private > 0.0,
            "{memory:?}"
        );
    }
}
