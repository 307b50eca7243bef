//! `cargo xtask bench`: the comparison of `bench/`, with the binaries it measures built beforehand.

use anyhow::Result;

use crate::command;
use crate::workspace::Workspace;

/// Builds the three programs for release, then the benchmark, and runs it with `arguments`.
///
/// # Errors
/// If a build or the benchmark fails.
pub(crate) fn run(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    let programs = [
        "tidegate-cli",
        "tidegate-gateway",
        "tidegate-supervisor",
        "tidegate-bench",
    ];
    let mut build = workspace.cargo(&["build", "--release", "--locked", "--bins"]);
    command::run(build.args(programs.iter().flat_map(|program| ["--package", program])))?;
    let mut bench = workspace.cargo(&[
        "run",
        "--release",
        "--locked",
        "--package",
        "tidegate-bench",
        "--",
    ]);
    command::run(bench.args(arguments))
}
