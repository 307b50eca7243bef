//! Where the programs are that the contenders consist of.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::subject::Subject;

/// Found programs; a missing one takes its contender out of the run, nothing else.
pub(crate) struct Programs {
    bin_dir: PathBuf,
}

impl Programs {
    /// Looks for Tidegate in `bin_dir`, or beside this executable.
    pub(crate) fn locate(bin_dir: Option<&Path>) -> Result<Self> {
        let beside = || {
            let own = env::current_exe().context("finding this executable")?;
            own.parent()
                .map(Path::to_owned)
                .context("this executable lies in no folder")
        };
        Ok(Self {
            bin_dir: bin_dir.map_or_else(beside, |dir| Ok(dir.to_owned()))?,
        })
    }

    /// The program `name` of ours, or else of the system.
    pub(crate) fn find(&self, name: &str) -> Result<PathBuf> {
        let folder = if name.starts_with("tidegate") {
            Some(self.bin_dir.clone())
        } else {
            None
        };
        let places = folder.map_or_else(system_folders, |folder| vec![folder]);
        let found = places
            .iter()
            .map(|place| place.join(name))
            .find(|path| path.is_file());
        found.with_context(|| format!("no program `{name}` in {}", shown(&places)))
    }

    /// Whether all programs of `subject` are there.
    pub(crate) fn check(&self, subject: Subject) -> Result<()> {
        needed(subject)
            .iter()
            .try_for_each(|name| self.find(name).map(drop))
    }
}

/// Whether `name` is one of the programs that are compared with all others.
pub(crate) fn is_ours(name: &str) -> bool {
    name.starts_with("tidegate")
}

const fn needed(subject: Subject) -> &'static [&'static str] {
    match subject {
        Subject::Plain | Subject::Tls => &[],
        Subject::Tidegate | Subject::TidegateTls | Subject::OneThread | Subject::TwoThreads => {
            &["tidegate-gateway", "tidegate-supervisor", "tidegate"]
        }
        Subject::Ssh => &["sshd", "ssh", "ssh-keygen"],
        Subject::Bore => &["bore"],
        Subject::Rathole => &["rathole"],
    }
}

/// `PATH`, and where `sshd` usually is although `PATH` does not say so.
fn system_folders() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/usr/local/sbin".into()])
        .collect()
}

fn shown(places: &[PathBuf]) -> String {
    match places {
        [only] => only.display().to_string(),
        _ => "PATH".to_owned(),
    }
}
