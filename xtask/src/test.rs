//! `cargo xtask test`: the test suite in its three parts.
//!
//! All parts build the whole workspace with one profile and one set of features, so that nothing is
//! compiled twice; they differ only in which tests they run.

use anyhow::{Result, bail};

use crate::command;
use crate::workspace::Workspace;

/// Beside each state file and in `tests/` of each crate: seconds.
const UNIT: &str = "not package(tidegate-e2e)";

/// Real binaries, real programs: minutes.
const E2E: &str = "package(tidegate-e2e) and not binary(foreign)";

/// Real binaries, other people's clients: `e2e/tests/foreign`.
const FOREIGN: &str = "package(tidegate-e2e) and binary(foreign)";

/// Runs the parts that `arguments` ask for: `--fast`, `--e2e`, or both. What follows `--` goes to
/// the test runner.
///
/// # Errors
/// If a flag is unknown, the build fails, or a test does.
pub(crate) fn run(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let mut parts = arguments.splitn(2, |argument| argument == "--");
    let flags = parts.next().unwrap_or_default();
    let passed_on: Vec<_> = parts
        .next()
        .unwrap_or_default()
        .iter()
        .map(String::as_str)
        .collect();
    let (fast, e2e) = match flags {
        [] => (true, true),
        [flag] if flag == "--fast" => (true, false),
        [flag] if flag == "--e2e" => (false, true),
        _ => bail!("cargo xtask test [--fast | --e2e] [-- ARGUMENT OF NEXTEST...]"),
    };
    build(workspace)?;
    if fast {
        nextest(workspace, "default", UNIT, &passed_on)?;
        examples(workspace)?;
    }
    if e2e {
        nextest(workspace, "default", "package(tidegate-e2e)", &passed_on)?;
    }
    Ok(())
}

/// Builds every target: the daemons that end-to-end tests start are among them.
pub(crate) fn build(workspace: &Workspace) -> Result<()> {
    command::run(&mut workspace.cargo(&["build", "--workspace", "--all-targets", "--locked"]))
}

/// Tests of single crates.
pub(crate) fn unit(workspace: &Workspace) -> Result<()> {
    nextest(workspace, "ci", UNIT, &[])
}

/// Examples in doc comments, which the test runner does not see.
pub(crate) fn examples(workspace: &Workspace) -> Result<()> {
    command::run(&mut workspace.cargo(&["test", "--workspace", "--doc", "--locked", "--quiet"]))
}

/// End-to-end tests with our own clients and real programs.
pub(crate) fn e2e(workspace: &Workspace) -> Result<()> {
    nextest(workspace, "ci", E2E, &[])
}

/// End-to-end tests with other people's clients.
pub(crate) fn foreign(workspace: &Workspace) -> Result<()> {
    nextest(workspace, "ci", FOREIGN, &[])
}

fn nextest(workspace: &Workspace, profile: &str, filter: &str, more: &[&str]) -> Result<()> {
    let base = [
        "nextest",
        "run",
        "--workspace",
        "--locked",
        "--profile",
        profile,
        "-E",
        filter,
    ];
    let mut runner = workspace.cargo(&base);
    command::run(runner.args(more).env("INSTA_UPDATE", "no"))
}
