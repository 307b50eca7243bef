//! Processor time of a process and its children.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::param::clock_ticks_per_second;

/// Seconds on a processor so far, user and system, of `pid` and of its children (`sshd` works in
/// children).
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64> {
    let mut total = 0.0;
    let mut left = vec![pid];
    while let Some(pid) = left.pop() {
        let tasks = tasks(pid)?;
        total += seconds(pid, &tasks);
        left.extend(tasks.iter().flat_map(|task| children(task)));
    }
    known(pid, total)
}

/// The same of `pid` alone (a supervisor's children are the commands it runs).
pub(crate) fn own_cpu_seconds(pid: u32) -> Result<f64> {
    known(pid, seconds(pid, &tasks(pid)?))
}

fn known(pid: u32, total: f64) -> Result<f64> {
    ensure!(
        total > 0.0,
        "no processor time known of process {pid}: is it still there?"
    );
    Ok(total)
}

fn seconds(pid: u32, tasks: &[PathBuf]) -> f64 {
    let fine: f64 = tasks.iter().map(|task| thread_seconds(task)).sum();
    fine.max(process_seconds(pid))
}

/// The folders of all threads.
pub(super) fn tasks(pid: u32) -> Result<Vec<PathBuf>> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).with_context(|| format!("reading {folder}"))?;
    Ok(entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect())
}

/// Counted in nanoseconds, but gone with the thread.
fn thread_seconds(task: &Path) -> f64 {
    let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
    let nanoseconds = text
        .split_whitespace()
        .next()
        .and_then(|word| word.parse::<u64>().ok());
    nanoseconds.unwrap_or(0) as f64 / 1e9
}

/// Counted with the threads that have ended, but rounded down to ticks of 10 ms: never too large,
/// so the larger of the two is the better one.
fn process_seconds(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let user_and_system = after_name.split_whitespace().skip(11).take(2);
    let ticks: u64 = user_and_system
        .filter_map(|word| word.parse::<u64>().ok())
        .sum();
    ticks as f64 / clock_ticks_per_second() as f64
}

/// The child processes of a thread.
pub(super) fn children(task: &Path) -> Vec<u32> {
    let text = fs::read_to_string(task.join("children")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_counted_as_it_is_spent_also_that_of_threads_that_ended() {
        let before = cpu_seconds(std::process::id()).unwrap();
        let spender = || (0..400_000_000_u64).map(std::hint::black_box).sum::<u64>();
        std::thread::spawn(spender).join().unwrap();
        let spent = cpu_seconds(std::process::id()).unwrap() - before;
        assert!(spent > 0.02, "{spent}");
    }
}
