//! Tidegate: a gateway, and for each tunnel a supervisor and a `port-forward`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use tidegate_client::{Client, Config};

use super::site::Site;
use super::{Started, certificates};
use crate::subject::Role;

/// The sandbox of a single tunnel.
pub(super) const SANDBOX: &str = "bench";

/// How Tidegate is set up.
pub(super) struct Setup {
    tls: bool,
    threads: Option<usize>,
    tunnels: usize,
}

impl Setup {
    /// One tunnel, everything else as by default.
    pub(super) const PLAINTEXT: Self = Self {
        tls: false,
        threads: None,
        tunnels: 1,
    };

    /// The same with mutual TLS.
    pub(super) const TLS: Self = Self {
        tls: true,
        ..Self::PLAINTEXT
    };

    /// Two tunnels through a gateway with so many threads.
    pub(super) const fn threads(count: usize) -> Self {
        Self {
            threads: Some(count),
            tunnels: 2,
            ..Self::PLAINTEXT
        }
    }

    fn sandboxes(&self) -> Vec<String> {
        match self.tunnels {
            1 => vec![SANDBOX.to_owned()],
            several => (0..several)
                .map(|index| format!("{SANDBOX}-{index}"))
                .collect(),
        }
    }

    /// The gateway's configuration file.
    fn configuration(&self) -> String {
        let threads = self
            .threads
            .map_or_else(String::new, |count| format!("threads = {count}\n"));
        format!(
            "sandboxes = {:?}\nunknown_sandboxes = \"wait\"\n{threads}",
            self.sandboxes()
        )
    }
}

/// Starts all processes; returns once every `port-forward` listens.
pub(super) async fn start(site: &mut Site<'_>, setup: &Setup) -> Result<Started> {
    if setup.tls {
        certificates::write(site.folder(), &setup.sandboxes())?;
    }
    let gateway = start_gateway(site, setup).await?;
    let mut entries = Vec::new();
    for sandbox in setup.sandboxes() {
        start_supervisor(site, setup, gateway, &sandbox)?;
        entries.push(start_forward(site, setup, gateway, &sandbox).await?);
    }
    Ok(Started {
        entries,
        gateway: Some(gateway),
    })
}

async fn start_gateway(site: &mut Site<'_>, setup: &Setup) -> Result<SocketAddr> {
    let config = site.write("gateway.toml", &setup.configuration())?;
    let mut arguments: Vec<OsString> = vec![
        "--listen".into(),
        "127.0.0.1:0".into(),
        "--config".into(),
        config.into(),
    ];
    if setup.tls {
        let file = |name: &str| site.folder().join(name).into_os_string();
        arguments.extend(["--tls-cert".into(), file("gateway.pem")]);
        arguments.extend(["--tls-key".into(), file("gateway.key")]);
        arguments.extend(["--client-ca".into(), file("ca.pem")]);
    } else {
        arguments.push("--insecure-dev".into());
    }
    let process = site.start(Role::Middle, "tidegate-gateway", arguments)?;
    process
        .wait_for_line("`listening on`", |line| {
            address_after(line, "listening on ")
        })
        .await
}

fn start_supervisor(
    site: &mut Site<'_>,
    setup: &Setup,
    gateway: SocketAddr,
    sandbox: &str,
) -> Result<()> {
    let mut arguments = dial(site, setup, gateway, "supervisor");
    arguments.extend(["--sandbox".into(), sandbox.into()]);
    site.start(Role::Exit, "tidegate-supervisor", arguments)
        .map(drop)
}

async fn start_forward(
    site: &mut Site<'_>,
    setup: &Setup,
    gateway: SocketAddr,
    sandbox: &str,
) -> Result<SocketAddr> {
    let any_to_target = format!(":{}", site.target.port());
    let mut arguments: Vec<OsString> =
        vec!["port-forward".into(), sandbox.into(), any_to_target.into()];
    arguments.extend(dial(site, setup, gateway, "client"));
    let process = site.start(Role::Entry, "tidegate", arguments)?;
    process
        .wait_for_line("`Forwarding`", |line| address_after(line, "Forwarding "))
        .await
}

/// The client SDK on its way to the gateway, with a connection of its own.
pub(super) fn client(tls: bool, gateway: SocketAddr, folder: &Path) -> Result<Client> {
    let scheme = if tls { "https" } else { "http" };
    let mut config = Config::new([format!("{scheme}://{gateway}")]);
    if tls {
        config.ca = Some(folder.join("ca.pem"));
        config.cert = Some(folder.join("client.pem"));
        config.key = Some(folder.join("client.key"));
    }
    Ok(Client::new(&config)?)
}

/// The flags that lead `who` to the gateway.
fn dial(site: &Site<'_>, setup: &Setup, gateway: SocketAddr, who: &str) -> Vec<OsString> {
    let scheme = if setup.tls { "https" } else { "http" };
    let mut flags: Vec<OsString> = vec!["--gateway".into(), format!("{scheme}://{gateway}").into()];
    if setup.tls {
        let file = |name: String| site.folder().join(name).into_os_string();
        flags.extend(["--ca".into(), file("ca.pem".to_owned())]);
        flags.extend(["--cert".into(), file(format!("{who}.pem"))]);
        flags.extend(["--key".into(), file(format!("{who}.key"))]);
    }
    flags
}

/// The address that follows `words`, with or without a scheme.
fn address_after(line: &str, words: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(words)?;
    let rest = rest.split_once("://").map_or(rest, |(_, rest)| rest);
    let end = rest.find(|c: char| !matches!(c, '0'..='9' | 'a'..='f' | '.' | ':' | '[' | ']'));
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_what_the_programs_print() {
        let check = |line, words, expected: Option<&str>| {
            assert_eq!(
                address_after(line, words),
                expected.map(|text| text.parse().unwrap())
            );
        };
        let forward = "Forwarding 127.0.0.1:40001 -> bench localhost:80";
        check(forward, "Forwarding ", Some("127.0.0.1:40001"));
        check(
            "INFO listening on 127.0.0.1:7",
            "listening on ",
            Some("127.0.0.1:7"),
        );
        check(
            "listening on [::1]:7, plaintext",
            "listening on ",
            Some("[::1]:7"),
        );
        check("listening on nothing", "listening on ", None);
    }
}
