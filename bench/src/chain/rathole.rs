//! The tunnel `rathole`: its server accepts the client's connections, its client dials the target.

use std::ffi::OsString;
use std::net::SocketAddr;

use anyhow::Result;

use super::site::{Site, free_port};
use crate::subject::Role;

/// Starts server and client; returns where the server will accept.
pub(super) fn start(site: &mut Site<'_>) -> Result<SocketAddr> {
    let control = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let entry = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let server = format!(
        "[server]\nbind_addr = \"{control}\"\ndefault_token = \"bench\"\n\
         [server.services.bench]\nbind_addr = \"{entry}\"\nnodelay = true\n"
    );
    let client = format!(
        "[client]\nremote_addr = \"{control}\"\ndefault_token = \"bench\"\nretry_interval = 1\n\
         [client.services.bench]\nlocal_addr = \"{}\"\nnodelay = true\n",
        site.target
    );
    for (role, flag, text) in [
        (Role::Middle, "--server", server),
        (Role::Exit, "--client", client),
    ] {
        let config = site.write(&format!("rathole{flag}.toml"), &text)?;
        site.start::<OsString>(role, "rathole", [flag.into(), config.into()])?;
    }
    Ok(entry)
}
