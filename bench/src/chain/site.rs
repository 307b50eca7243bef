//! The ground a contender is built on: a folder, a target, and the processes started so far.

use std::ffi::OsStr;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::process::Process;
use crate::programs::Programs;
use crate::subject::Role;
use crate::worker::Worker;

/// What a contender may use while it starts.
pub(super) struct Site<'a> {
    programs: &'a Programs,
    pub(super) home: TempDir,
    pub(super) target: SocketAddr,
    pub(super) parts: Vec<(Role, Process)>,
}

impl<'a> Site<'a> {
    /// Makes the folder and starts the target.
    pub(super) async fn open(programs: &'a Programs) -> Result<(Self, Process)> {
        let home = tempfile::Builder::new()
            .prefix("tidegate-bench-")
            .tempdir()?;
        let (process, address) = Process::start_worker(&Worker::Target, home.path()).await?;
        let target = address.parse().context("the target's address")?;
        Ok((
            Self {
                programs,
                home,
                target,
                parts: Vec::new(),
            },
            process,
        ))
    }

    /// The contender's own folder.
    pub(super) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file into it.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.folder().join(name);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// Where a program is.
    pub(super) fn find(&self, program: &str) -> Result<PathBuf> {
        self.programs.find(program)
    }

    /// Starts a program as one of the contender's processes.
    pub(super) fn start<S: AsRef<OsStr>>(
        &mut self,
        role: Role,
        program: &str,
        arguments: impl IntoIterator<Item = S>,
    ) -> Result<&mut Process> {
        let path = self.find(program)?;
        let process = Process::start(program, &path, arguments, self.folder())?;
        self.parts.push((role, process));
        let (_, process) = self.parts.last_mut().expect("just pushed");
        Ok(process)
    }

    /// Starts a worker as one of the contender's processes; returns where it listens.
    pub(super) async fn start_worker(&mut self, role: Role, worker: &Worker) -> Result<SocketAddr> {
        let (process, address) = Process::start_worker(worker, self.folder()).await?;
        self.parts.push((role, process));
        address
            .parse()
            .with_context(|| format!("the address of a {}", worker.name()))
    }

    /// What the processes printed last.
    pub(super) fn last_words(&self) -> String {
        last_words(&self.parts)
    }
}

/// What `parts` printed last.
pub(super) fn last_words(parts: &[(Role, Process)]) -> String {
    parts
        .iter()
        .map(|(_, process)| process.last_words())
        .collect()
}

/// A port nobody listens on, for programs that can't be asked which one they took.
pub(super) fn free_port() -> Result<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    Ok(listener.local_addr()?.port())
}
