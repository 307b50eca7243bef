//! `ssh -L` to an `sshd` of our own: one encrypted hop, the default cipher, no compression.

use std::fs;
use std::net::SocketAddr;
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use tokio::net::TcpStream;
use tokio::process::Command;

use super::site::{Site, free_port};
use crate::bounded::{SHORT, within};
use crate::subject::Role;

/// What `sshd` insists on when it runs as root.
const SEPARATION_FOLDER: &str = "/run/sshd";

/// Starts server and client; returns where the client listens.
pub(super) async fn start(site: &mut Site<'_>) -> Result<SocketAddr> {
    make_key(site, "host").await?;
    make_key(site, "user").await?;
    let server = start_server(site)?;
    within("waiting for sshd", SHORT, until_accepting(server)).await?;
    let entry = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    start_client(site, server, entry)?;
    Ok(entry)
}

async fn make_key(site: &Site<'_>, name: &str) -> Result<()> {
    let mut command = Command::new(site.find("ssh-keygen")?);
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(site.folder().join(name));
    command.stdin(Stdio::null()).kill_on_drop(true);
    let status = within("making an ssh key", SHORT, command.status()).await?;
    ensure!(status.success(), "ssh-keygen ended with {status}");
    Ok(())
}

fn start_server(site: &mut Site<'_>) -> Result<SocketAddr> {
    if rustix::process::geteuid().is_root() {
        fs::create_dir_all(SEPARATION_FOLDER).context(SEPARATION_FOLDER)?;
    }
    let port = free_port()?;
    let home = site.folder().display().to_string();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host\nPidFile none\nUsePAM no\n\
         AuthorizedKeysFile {home}/user.pub\nStrictModes no\nPermitRootLogin prohibit-password\n\
         PasswordAuthentication no\nAllowTcpForwarding yes\nCompression no\n"
    );
    let config = site.write("sshd_config", &config)?.into_os_string();
    site.start(
        Role::Exit,
        "sshd",
        ["-D".into(), "-e".into(), "-f".into(), config],
    )?;
    Ok(SocketAddr::from(([127, 0, 0, 1], port)))
}

fn start_client(site: &mut Site<'_>, server: SocketAddr, entry: SocketAddr) -> Result<()> {
    let forward = format!("{entry}:{}", site.target);
    let port = server.port().to_string();
    let key = site.folder().join("user").display().to_string();
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME"));
    let destination = format!(
        "{}@{}",
        user.unwrap_or_else(|_| "root".to_owned()),
        server.ip()
    );
    let options = [
        "-F",
        "/dev/null",
        "-N",
        "-L",
        &forward,
        "-p",
        &port,
        "-i",
        &key,
        "-o",
        "IdentitiesOnly=yes",
        "-o",
        "BatchMode=yes",
        "-o",
        "ExitOnForwardFailure=yes",
        "-o",
        "StrictHostKeyChecking=no",
        "-o",
        "UserKnownHostsFile=/dev/null",
        "-o",
        "Compression=no",
        &destination,
    ];
    site.start(Role::Entry, "ssh", options).map(drop)
}

async fn until_accepting(address: SocketAddr) -> Result<()> {
    while TcpStream::connect(address).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Ok(())
}
