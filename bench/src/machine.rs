//! What machine this is, as far as figures depend on it.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

/// Raises the soft limit of open files to the hard one; child processes inherit it.
pub(crate) fn raise_descriptor_limit() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised).context("raising the limit of open files")
}

/// How many files one process may have open.
pub(crate) fn descriptor_limit() -> usize {
    let current = getrlimit(Resource::Nofile).current;
    current.map_or(usize::MAX, |limit| {
        usize::try_from(limit).unwrap_or(usize::MAX)
    })
}

/// Cores, kernel and load, for the head of a report.
pub(crate) fn describe() -> Value {
    json!({
        "cores": std::thread::available_parallelism().map_or(0, usize::from),
        "kernel": first_words("/proc/sys/kernel/osrelease", 1),
        "loadAverage": first_words("/proc/loadavg", 3),
        "descriptorLimit": descriptor_limit(),
    })
}

fn first_words(path: &str, count: usize) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace()
        .take(count)
        .collect::<Vec<_>>()
        .join(" ")
}
