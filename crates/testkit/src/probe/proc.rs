//! One process as `/proc` shows it. A process that is gone holds nothing.

use std::{fs, path::PathBuf};

/// Returns what each open descriptor of a process leads to, for instance `socket:[4711]`.
pub fn descriptors(pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    entries
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .collect()
}

/// Returns the resident memory of a process in bytes; `None` if it is gone.
pub fn resident_memory(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// Tells whether a process runs; one that has ended and was not reaped does not.
pub fn is_alive(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// Returns the children of a process, their children and so on, those that wait to be reaped
/// included, in ascending order.
pub fn descendants(pid: u32) -> Vec<u32> {
    let all: Vec<Stat> = all_processes().filter_map(stat).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            all.iter()
                .filter(|stat| stat.parent == parent)
                .map(|stat| stat.pid),
        );
        next += 1;
    }
    found.remove(0);
    found.sort_unstable();
    found
}

struct Stat {
    pid: u32,
    parent: u32,
    state: char,
}

fn all_processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // "pid (name) state parent ...", and the name may hold anything, brackets too
    let (_, after_name) = text.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Stat { pid, parent, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_sees_itself() {
        let own = std::process::id();
        assert!(is_alive(own));
        assert!(resident_memory(own).unwrap() > 1 << 20);
        assert!(descriptors(own).len() > 2);
    }

    #[test]
    fn nobody_holds_nothing() {
        assert_eq!((descriptors(0).len(), resident_memory(0)), (0, None));
    }
}
