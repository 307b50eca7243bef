//! Real programs that the end-to-end tests run through a forward or put in front of a gateway.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::command;
use crate::workspace::{Workspace, is_installed};

/// A program that tests start, and the Debian package that has it.
const PROGRAMS: [(&str, &str); 17] = [
    ("curl", "curl"),
    ("etcd", "etcd-server"),
    ("git", "git"),
    ("haproxy", "haproxy"),
    ("initdb", "postgresql"),
    ("ip", "iproute2"),
    ("nc.openbsd", "netcat-openbsd"),
    ("nft", "nftables"),
    ("nginx", "nginx"),
    ("psql", "postgresql-client"),
    ("redis-cli", "redis-tools"),
    ("redis-server", "redis-server"),
    ("rsync", "rsync"),
    ("scp", "openssh-client"),
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
    ("tmux", "tmux"),
];

/// Installs the packages whose programs are missing.
///
/// # Errors
/// If `apt-get` fails or is not there; the message lists the packages.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    let missing: BTreeSet<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(_, package)| *package)
        .collect();
    if missing.is_empty() {
        println!(
            "there already: {} programs that the tests run",
            PROGRAMS.len()
        );
        return Ok(());
    }
    apt(workspace, &missing).with_context(|| {
        let packages = missing.into_iter().collect::<Vec<_>>().join(" ");
        format!("the end-to-end tests need these Debian packages, installed as root: {packages}")
    })
}

fn apt(workspace: &Workspace, packages: &BTreeSet<&str>) -> Result<()> {
    let apt_get = |arguments: &[&str]| {
        let mut command = workspace.command("apt-get");
        command
            .env("DEBIAN_FRONTEND", "noninteractive")
            .args(arguments);
        command
    };
    command::run(&mut apt_get(&["update", "-qq"]))?;
    command::run(apt_get(&["install", "-qq", "--no-install-recommends"]).args(packages))
}
