//! The tunnel `bore`: its server accepts the client's connections, its client dials the target.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::net::TcpStream;

use super::site::{Site, free_port};
use crate::bounded::{SHORT, within};
use crate::subject::Role;

/// Where a `bore` server always listens for its clients.
const CONTROL_PORT: u16 = 7835;

/// Starts server and client; returns where the server accepts.
pub(super) async fn start(site: &mut Site<'_>) -> Result<SocketAddr> {
    let taken = TcpStream::connect(("127.0.0.1", CONTROL_PORT))
        .await
        .is_ok();
    ensure!(
        !taken,
        "another bore server already listens on port {CONTROL_PORT}"
    );
    site.start(Role::Middle, "bore", ["server", "--bind-addr", "127.0.0.1"])?;
    within("waiting for the bore server", SHORT, until_accepting()).await?;
    let port = free_port()?;
    let (from, to) = (port.to_string(), site.target.port().to_string());
    let client = [
        "local",
        &to,
        "--local-host",
        "127.0.0.1",
        "--to",
        "127.0.0.1",
        "--port",
        &from,
    ];
    site.start(Role::Exit, "bore", client)?;
    Ok(SocketAddr::from(([127, 0, 0, 1], port)))
}

async fn until_accepting() -> Result<()> {
    while TcpStream::connect(("127.0.0.1", CONTROL_PORT))
        .await
        .is_err()
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
