//! Who descends from whom, as `/proc` tells it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A process that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// When it was started, in ticks: with its id, this names it for ever.
    started: u64,
}

impl Process {
    /// A handle of it; nothing if it is dead, whoever has its id now.
    pub(super) fn open(self) -> Option<Handle> {
        let handle = pidfd_open(self.pid, PidfdFlags::empty()).ok()?;
        let now = read(self.pid.as_raw_pid())?;
        (now.started == self.started).then_some(Handle(handle))
    }
}

/// One process, and never its successor.
#[derive(Debug)]
pub(super) struct Handle(OwnedFd);

impl Handle {
    /// Signals it, if it lives and may be signalled.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }
}

/// All descendants of `root`, dead ones apart.
///
/// The list is older than the first look at it: a process may have forked since.
pub(super) fn descendants(root: Pid) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all() {
        children.entry(process.parent).or_default().push(process);
    }
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut parents = vec![root.as_raw_pid()];
    while let Some(parent) = parents.pop() {
        for process in children.get(&parent).into_iter().flatten() {
            // Read one after the other, the lines may contradict each other.
            if seen.insert(process.pid) {
                parents.push(process.pid.as_raw_pid());
                found.push(*process);
            }
        }
    }
    found
}

fn all() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| read(entry.file_name().to_str()?.parse().ok()?))
}

fn read(pid: i32) -> Option<Process> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // A name need not be text.
    parse(pid, &String::from_utf8_lossy(&line))
}

/// Reads a line of `/proc/PID/stat`; nothing if that process is dead.
fn parse(pid: i32, line: &str) -> Option<Process> {
    // The name may hold anything, brackets included.
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") {
        return None;
    }
    Some(Process {
        pid: Pid::from_raw(pid)?,
        parent: fields.next()?.parse().ok()?,
        group: fields.next()?.parse().ok()?,
        started: fields.nth(16)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_confuse() {
        let line = "7 (a) Z 1 (b)) S 3 4 5 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8675 2 3";
        let process = parse(7, line).unwrap();
        assert_eq!(
            (process.parent, process.group, process.started),
            (3, 4, 8675)
        );
        assert_eq!(parse(7, &line.replace(" S ", " Z ")), None);
        assert_eq!(parse(7, ""), None);
    }
}
