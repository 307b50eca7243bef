//! An etcd of one's own.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{
    port,
    program::{StartError, find},
};
use crate::process::Process;

/// A running etcd of one member; dropping it ends it and removes its data.
#[derive(Debug)]
pub struct Etcd {
    // Before the folder, which must outlive it.
    process: Process,
    folder: TempDir,
    program: PathBuf,
    ports: Ports,
}

#[derive(Clone, Copy, Debug)]
struct Ports {
    clients: u16,
    peers: u16,
}

impl Etcd {
    /// Starts an empty one without authentication.
    ///
    /// # Errors
    ///
    /// If etcd is not installed or does not start.
    pub async fn start() -> Result<Self, StartError> {
        let program = find("etcd")?;
        let folder = tempfile::tempdir()?;
        let ports = Ports {
            clients: port::free(),
            peers: port::free(),
        };
        let process = serve(&program, folder.path(), ports).await?;
        Ok(Self {
            process,
            folder,
            program,
            ports,
        })
    }

    /// Returns its URL, as a gateway's `directory` takes it.
    pub fn url(&self) -> String {
        format!("etcd://{}", self.address())
    }

    /// Returns where it listens for clients, also while it is down.
    pub fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.ports.clients).into()
    }

    /// Lets it stand still; its connections stay open.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Ends it at once, as a crash does.
    ///
    /// # Panics
    ///
    /// If it does not end.
    pub async fn kill(&self) {
        self.process.kill();
        self.process.exit(crate::wait::GENEROUS).await;
    }

    /// Starts it again on the same port with the same data.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub async fn restart(&mut self) -> Result<(), StartError> {
        self.process = serve(&self.program, self.folder.path(), self.ports).await?;
        Ok(())
    }
}

async fn serve(program: &Path, folder: &Path, ports: Ports) -> std::io::Result<Process> {
    let clients = format!("http://127.0.0.1:{}", ports.clients);
    let peers = format!("http://127.0.0.1:{}", ports.peers);
    let mut command = Command::new(program);
    command
        .args(["--name", "test", "--logger", "zap"])
        .args(["--listen-client-urls", &clients])
        .args(["--advertise-client-urls", &clients])
        .args(["--listen-peer-urls", &peers])
        .args(["--initial-advertise-peer-urls", &peers])
        .args(["--initial-cluster", &format!("test={peers}")])
        .arg("--data-dir")
        .arg(folder.join("data"))
        .current_dir(folder);
    // Debian's defaults for the system's own etcd must not reach this one.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ETCD_") {
            command.env_remove(name);
        }
    }
    let process = Process::spawn(command)?;
    process.line("serving client traffic").await;
    Ok(process)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn it_comes_back_on_its_port() {
        let mut etcd = Etcd::start().await.unwrap();
        assert!(TcpStream::connect(etcd.address()).is_ok());
        etcd.kill().await;
        assert!(TcpStream::connect(etcd.address()).is_err());
        etcd.restart().await.unwrap();
        assert!(TcpStream::connect(etcd.address()).is_ok());
    }
}
