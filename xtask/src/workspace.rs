//! Where things are: the checkout, the cache outside it, and the programs of both.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, iter};

use anyhow::{Context, Result};

use crate::command;

/// The checkout this program was built from, and the cache that outlives it.
pub(crate) struct Workspace {
    root: PathBuf,
    cache: PathBuf,
}

impl Workspace {
    /// Finds the checkout and the cache: `$XDG_CACHE_HOME/tidegate`, else `~/.cache/tidegate`.
    pub(crate) fn discover() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("xtask stands in a folder of the workspace")?
            .to_owned();
        let base = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
            Some(base) => PathBuf::from(base),
            None => env::home_dir()
                .context("HOME is not set: nowhere to cache tools")?
                .join(".cache"),
        };
        Ok(Self {
            root,
            cache: base.join("tidegate"),
        })
    }

    /// The top folder of the checkout.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Prebuilt cargo tools: a Python virtual environment.
    pub(crate) fn tools(&self) -> PathBuf {
        self.cache.join("tools")
    }

    /// Programs that `go install` builds.
    pub(crate) fn go(&self) -> PathBuf {
        self.cache.join("go")
    }

    /// Other people's clients, a folder each.
    pub(crate) fn clients(&self) -> PathBuf {
        self.cache.join("clients")
    }

    /// A command that runs in the top folder and finds the cached tools before the system's.
    ///
    /// Tests learn from `TIDEGATE_CLIENTS` where the clients are.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env("PATH", self.search_path())
            .env("TIDEGATE_CLIENTS", self.clients());
        command
    }

    /// `cargo` with `arguments`; never touches the lock file.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.command("cargo");
        command.args(arguments);
        command
    }

    /// Every file of the checkout that git knows or would add, relative to the top folder, sorted.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        let listing = command::output(self.command("git").args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "-z",
        ]))?;
        let mut files: Vec<_> = listing
            .split_terminator('\0')
            .map(PathBuf::from)
            .filter(|path| self.root.join(path).is_file())
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    fn search_path(&self) -> std::ffi::OsString {
        let inherited = env::var_os("PATH").unwrap_or_default();
        let ours = [self.tools().join("bin"), self.go().join("bin")];
        let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
        let all = ours
            .into_iter()
            .chain(env::split_paths(&inherited))
            .chain(system);
        env::join_paths(all).unwrap_or(inherited)
    }
}

/// Whether `program` is in one of the folders of PATH, or where Debian keeps daemons and Postgres.
pub(crate) fn is_installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let daemons = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let in_folder = |folder: PathBuf| folder.join(program).is_file();
    env::split_paths(&path)
        .chain(daemons)
        .chain(postgres_folders())
        .any(in_folder)
}

fn postgres_folders() -> impl Iterator<Item = PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok();
    let mut entries = versions.into_iter().flatten().flatten();
    iter::from_fn(move || entries.next().map(|version| version.path().join("bin")))
}
