//! Single programs of ours, for tests that are about how each is told whom to trust and where to go.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use tidegate_e2e::SANDBOX;
use tidegate_e2e::tools::run;
use tidegate_testkit::certs::{Authority, CertFiles};
use tidegate_testkit::process::{Process, binary};

/// A program of ours that learns nothing from whoever runs the tests.
pub(crate) fn ours(name: &str) -> Command {
    let mut command = Command::new(binary(name).unwrap());
    command.stdin(Stdio::null()).env_remove("RUST_LOG");
    for (variable, _) in std::env::vars_os() {
        let upper = variable.to_string_lossy().to_ascii_uppercase();
        if upper.starts_with("TIDEGATE_") || upper.ends_with("_PROXY") {
            command.env_remove(variable);
        }
    }
    command
}

/// `--flag path` for each path.
pub(crate) fn files(pairs: &[(&str, &Path)]) -> Vec<OsString> {
    let words = |(flag, path): &(&str, &Path)| [OsString::from(flag), OsString::from(path)];
    pairs.iter().flat_map(words).collect()
}

/// `--ca`, `--cert` and `--key` of a caller.
pub(crate) fn identity(ca: &Path, certificate: Option<&CertFiles>) -> Vec<OsString> {
    let mut arguments = files(&[("--ca", ca)]);
    if let Some(CertFiles { cert, key }) = certificate {
        arguments.extend(files(&[("--cert", cert), ("--key", key)]));
    }
    arguments
}

/// A gateway on a free port, with its address. It logs everything.
pub(crate) async fn gateway(arguments: Vec<OsString>) -> (Process, SocketAddr) {
    gateway_at("127.0.0.1:0", arguments).await
}

/// A gateway at this address.
pub(crate) async fn gateway_at(listen: &str, arguments: Vec<OsString>) -> (Process, SocketAddr) {
    let mut command = ours("tidegate-gateway");
    command.args(["--listen", listen, "-vv"]).args(arguments);
    let process = Process::spawn(command).unwrap();
    let address = process.address_after(" listening on ").await;
    (process, address)
}

/// What a gateway needs to serve callers with certificates of `authority`.
pub(crate) fn protected(certificate: &CertFiles, authority: &Authority) -> Vec<OsString> {
    let ca = authority.ca();
    let CertFiles { cert, key } = certificate;
    files(&[
        ("--tls-cert", cert),
        ("--tls-key", key),
        ("--client-ca", &ca),
    ])
}

/// A supervisor that was told these gateways. It logs everything.
pub(crate) fn supervisor(gateways: &[&str], arguments: Vec<OsString>) -> Command {
    let mut command = ours("tidegate-supervisor");
    command.args(["--sandbox", SANDBOX, "-vv"]).args(arguments);
    for gateway in gateways {
        command.args(["--gateway", gateway]);
    }
    command
}

/// Asks a gateway for its sandboxes, as somebody who trusts and shows what `arguments` say.
pub(crate) fn asking(address: SocketAddr, arguments: Vec<OsString>) -> Command {
    let mut command = ours("tidegate");
    command.arg("--gateway").arg(format!("https://{address}"));
    command.args(arguments).arg("sandboxes");
    command
}

/// Fails unless the gateway answers.
pub(crate) async fn is_served(address: SocketAddr, arguments: Vec<OsString>) {
    run(asking(address, arguments)).await;
}
