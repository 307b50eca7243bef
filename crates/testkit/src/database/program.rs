//! Where the servers' programs lie, and why one does not start.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
};

/// Why a database does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Its program is not installed.
    #[error("there is no program `{0}` on this machine: `cargo xtask setup` installs it")]
    Missing(String),
    /// The system refuses a process, a folder or a port.
    #[error("a database for the test cannot be started: {0}")]
    System(#[from] io::Error),
    /// A preparing program ended with a failure.
    #[error("`{program}` failed: {output}")]
    Failed {
        /// Which one.
        program: String,
        /// What it wrote.
        output: String,
    },
}

/// Finds a server's program: on the path, in the system's folders, or in Debian's folder of the
/// newest Postgres.
///
/// # Errors
///
/// [`StartError::Missing`], which says how to install it.
pub fn find(program: &str) -> Result<PathBuf, StartError> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/bin", "/usr/sbin"].map(PathBuf::from))
        .chain(postgres_folders())
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| StartError::Missing(program.into()))
}

/// Newest first.
fn postgres_folders() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut folders: Vec<_> = versions
        .flatten()
        .map(|version| version.path().join("bin"))
        .collect();
    folders.sort();
    folders.reverse();
    folders
}

/// A command for `program`, as the user `postgres` where we are root: a Postgres refuses to be.
pub(super) fn unprivileged(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(program);
    command
}

/// Runs a preparing program to its end.
pub(super) fn run(mut command: Command) -> Result<(), StartError> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(StartError::Failed {
        program: command.get_program().to_string_lossy().into_owned(),
        output: String::from_utf8_lossy(&said).into_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_the_remedy() {
        let error = find("no-such-database").unwrap_err().to_string();
        assert!(error.contains("`no-such-database`"), "{error}");
        assert!(error.contains("`cargo xtask setup`"), "{error}");
    }
}
