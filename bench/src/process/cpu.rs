//! Processor time of a process and its children.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

/// Seconds on a processor so far, user and system, of all threads of `pid` and of its children
/// (`sshd` works in children). From `schedstat`, which counts nanoseconds; a thread that has ended
/// is no longer in it, so this suits processes that keep their threads.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut total = 0.0;
    let mut left = vec![pid];
    while let Some(pid) = left.pop() {
        for task in tasks(pid)? {
            total += thread_seconds(&task);
            left.extend(children(&task));
        }
    }
    ensure!(
        total > 0.0,
        "no processor time known of process {pid}: is it still there?"
    );
    Ok(total)
}

fn tasks(pid: u32) -> Result<Vec<PathBuf>> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {folder}"))?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect())
}

/// A thread that has just ended counts as zero.
fn thread_seconds(task: &std::path::Path) -> f64 {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse::<u64>().ok());
    nanoseconds.unwrap_or(0) as f64 / 1e9
}

fn children(task: &std::path::Path) -> Vec<u32> {
    let text = fs::read_to_string(task.join("children")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_time_is_known_and_grows() {
        let before = cpu_seconds(std::process::id()).unwrap();
        let spent: u64 = (0..20_000_000_u64).map(std::hint::black_box).sum();
        assert!(cpu_seconds(std::process::id()).unwrap() > before, "{spent}");
    }
}
