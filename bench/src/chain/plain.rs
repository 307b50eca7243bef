//! The baseline: three relays in a row that do nothing but copy.
//!
//! With TLS the first relay encrypts, the second decrypts and encrypts again, the third decrypts:
//! the work Tidegate's three programs can't avoid.

use std::net::SocketAddr;

use anyhow::Result;

use super::certificates;
use super::site::Site;
use crate::subject::Role;
use crate::worker::Worker;

/// Starts the relays from the target's side; returns where the first one listens.
pub(super) async fn start(site: &mut Site<'_>, tls: bool) -> Result<SocketAddr> {
    if tls {
        certificates::write(site.folder(), &[])?;
    }
    let mut connect = site.target;
    for role in [Role::Exit, Role::Middle, Role::Entry] {
        let relay = Worker::Relay {
            connect,
            accept_tls: tls && role != Role::Entry,
            connect_tls: tls && role != Role::Exit,
            certificates: site.folder().to_owned(),
        };
        connect = site.start_worker(role, &relay).await?;
    }
    Ok(connect)
}
