//! A process and those it has started.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use super::cpu::{children, tasks};

/// A process with its descendants.
pub(crate) struct Family {
    /// The process, and those that run the same program.
    pub(crate) same: Vec<u32>,
    /// Those that run other programs.
    pub(crate) others: Vec<u32>,
}

impl Family {
    /// Looks who there is.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let program = program(pid)?;
        let mut family = Self {
            same: Vec::new(),
            others: Vec::new(),
        };
        let mut left = vec![pid];
        while let Some(pid) = left.pop() {
            // Who has ended in the meantime is no member.
            let (Ok(tasks), Ok(runs)) = (tasks(pid), self::program(pid)) else {
                continue;
            };
            left.extend(tasks.iter().flat_map(|task| children(task)));
            if runs == program {
                family.same.push(pid);
            } else {
                family.others.push(pid);
            }
        }
        Ok(family)
    }
}

fn program(pid: u32) -> Result<PathBuf> {
    let link = format!("/proc/{pid}/exe");
    fs::read_link(&link).with_context(|| format!("reading {link}"))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_that_runs_another_program_is_told_apart() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let family = Family::of(std::process::id()).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(family.same.contains(&std::process::id()));
        assert!(family.others.contains(&child.id()));
    }
}
