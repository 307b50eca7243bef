//! `cargo xtask bless`: what the snapshot tests see becomes what they expect. Read the diff after.

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{command, setup};

/// Runs the tests of single crates and accepts every snapshot that differs.
///
/// # Errors
/// If a test fails for another reason than a snapshot.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    setup::install_tools(workspace)?;
    let accept = [
        "insta",
        "test",
        "--accept",
        "--unreferenced=delete",
        "--test-runner",
        "nextest",
    ];
    let mut cargo = workspace.cargo(&accept);
    command::run(cargo.args(["--workspace", "--exclude", "tidegate-e2e"]))
}
