//! A Postgres of one's own.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{
    port,
    program::{StartError, find, run, unprivileged},
};
use crate::{
    process::{Process, Signal},
    wait,
};

/// A running Postgres; dropping it ends it and removes its data.
#[derive(Debug)]
pub struct Postgres {
    // Before the folder, which must outlive it.
    process: Process,
    folder: TempDir,
    program: PathBuf,
    port: u16,
}

impl Postgres {
    /// Makes an empty cluster and starts it; the user `postgres` may do everything without a
    /// password.
    ///
    /// # Errors
    ///
    /// If Postgres is not installed or does not start.
    pub async fn start() -> Result<Self, StartError> {
        let (initdb, program) = (find("initdb")?, find("postgres")?);
        let folder = tempfile::tempdir()?;
        if rustix::process::geteuid().is_root() {
            let mut chown = Command::new("chown");
            chown.arg("postgres:postgres").arg(folder.path());
            run(chown)?;
        }
        let mut make = unprivileged(&initdb);
        make.args(["--no-sync", "--auth", "trust", "--username", "postgres"])
            .args(["--locale", "C", "--encoding", "UTF8"])
            .arg(folder.path().join("data"))
            .current_dir(folder.path());
        run(make)?;
        let port = port::free();
        let process = serve(&program, &folder, port).await?;
        Ok(Self {
            process,
            folder,
            program,
            port,
        })
    }

    /// Returns the URL of its database `postgres`.
    pub fn url(&self) -> String {
        format!(
            "postgres://postgres@127.0.0.1:{}/postgres?sslmode=disable",
            self.port
        )
    }

    /// Returns where it listens, also while it is down.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port).into()
    }

    /// Lets every one of its processes stand still; its connections stay open.
    pub fn stop(&self) {
        self.process.signal_tree(Signal::STOP);
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.signal_tree(Signal::CONT);
    }

    /// Ends it at once, as a crash does. What it had confirmed is there after
    /// [`restart`](Self::restart): the machine has not crashed.
    ///
    /// # Panics
    ///
    /// If it does not end.
    pub async fn kill(&self) {
        // The immediate shutdown: nothing is flushed, and no child outlives it to hold the port.
        self.process.signal(Signal::QUIT);
        self.process.exit(wait::GENEROUS).await;
    }

    /// Starts it again on the same port with the same data.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub async fn restart(&mut self) -> Result<(), StartError> {
        self.process = serve(&self.program, &self.folder, self.port).await?;
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Its connections have sessions of their own, out of reach of the group's end, and one that
        // stands still would not notice that the server is gone.
        self.resume();
        self.process.signal(Signal::QUIT);
        let _ = wait::until(wait::GENEROUS, || !self.process.is_running());
    }
}

async fn serve(program: &Path, folder: &TempDir, port: u16) -> std::io::Result<Process> {
    let mut command = unprivileged(program);
    command
        .arg("-D")
        .arg(folder.path().join("data"))
        .arg("-k")
        .arg(folder.path())
        .args(["-F", "-h", "127.0.0.1", "-p", &port.to_string()])
        .args(["-c", "max_connections=200"])
        .current_dir(folder.path());
    let process = Process::spawn(command)?;
    process.line("ready to accept connections").await;
    Ok(process)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn it_comes_back_on_its_port() {
        let mut postgres = Postgres::start().await.unwrap();
        assert!(TcpStream::connect(postgres.address()).is_ok());
        postgres.kill().await;
        assert!(TcpStream::connect(postgres.address()).is_err());
        postgres.restart().await.unwrap();
        assert!(TcpStream::connect(postgres.address()).is_ok());
    }
}
