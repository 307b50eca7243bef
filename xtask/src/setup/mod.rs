//! `cargo xtask setup`: everything that checks and tests need beyond a Rust toolchain.
//!
//! Each part is skipped when it is there already, and lives in the cache outside the checkout, so a
//! clean clone finds it. Only the Debian packages go to the system, and only those whose program
//! is missing.

mod clients;
mod debian;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::Workspace;

pub(crate) use clients::install as install_clients;
pub(crate) use debian::install as install_packages;
pub(crate) use tools::install as install_tools;

/// Installs all that is missing.
///
/// # Errors
/// If a part cannot be installed; the message says which, and how to provide it by hand.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    install_tools(workspace)?;
    install_packages(workspace)?;
    install_clients(workspace)
}

/// A folder of the cache that holds exactly what `wanted` says, or nothing that counts.
struct Kit {
    folder: PathBuf,
    wanted: String,
}

impl Kit {
    fn new(folder: PathBuf, wanted: impl Into<String>) -> Self {
        Self {
            folder,
            wanted: wanted.into(),
        }
    }

    /// Makes the folder with `make`, unless it is there and holds what is wanted.
    ///
    /// A folder that holds something else, or half of it, is made anew.
    fn ensure(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        let stamp = self.folder.join(".holds");
        if fs::read_to_string(&stamp).is_ok_and(|held| held == self.wanted) {
            println!("there already: {}", self.wanted);
            return Ok(());
        }
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)
                .with_context(|| format!("cannot remove {}", self.folder.display()))?;
        }
        fs::create_dir_all(&self.folder)
            .with_context(|| format!("cannot create {}", self.folder.display()))?;
        make(&self.folder).with_context(|| format!("cannot install {}", self.wanted))?;
        fs::write(&stamp, &self.wanted).with_context(|| format!("cannot write {}", stamp.display()))
    }
}

/// Makes a Python virtual environment in `folder` that holds `requirements` from PyPI.
fn python(workspace: &Workspace, folder: &Path, requirements: &[&str]) -> Result<()> {
    command::run(
        workspace
            .command("python3")
            .args(["-m", "venv"])
            .arg(folder),
    )
    .context(
        "a Python virtual environment is needed: install python3 with its venv module \
         (Debian: apt-get install python3-venv)",
    )?;
    let pip = folder.join("bin/python3");
    command::run(
        workspace
            .command(pip)
            .args(["-m", "pip", "install", "--quiet"])
            .args(requirements),
    )
    .context("PyPI must be reachable, or PIP_INDEX_URL must name a mirror of it")
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_kit_is_made_once_and_anew_when_another_is_wanted() {
        let folder = std::env::temp_dir().join(format!("tidegate-kit-{}", std::process::id()));
        let kit = |wanted: &str| Kit::new(folder.clone(), wanted);
        let mut made = 0;
        let mut make = |kit: Kit, fails: bool| {
            let result = kit.ensure(|folder| {
                made += 1;
                fs::write(folder.join(format!("thing-{made}")), "")?;
                if fails { bail!("half") } else { Ok(()) }
            });
            (made, result.is_ok())
        };
        assert_eq!(make(kit("a 1"), false), (1, true));
        assert_eq!(make(kit("a 1"), false), (1, true), "there already");
        assert_eq!(make(kit("a 2"), true), (2, false), "another is wanted");
        assert_eq!(
            make(kit("a 2"), false),
            (3, true),
            "half of it does not count"
        );
        assert!(!folder.join("thing-1").exists(), "the older one is gone");
        fs::remove_dir_all(&folder).expect("the test's own folder");
    }
}
