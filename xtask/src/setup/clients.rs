//! Other people's clients: they hold no line of ours, so they tell whether the wire is what we say.

use std::path::Path;

use anyhow::{Context, Result};

use super::{Kit, python};
use crate::command;
use crate::workspace::Workspace;

/// Released clients of the service, both dialects; each into `clients/openshell-VERSION`.
const OPENSHELL: [&str; 4] = ["0.0.113", "0.0.116", "0.1.0", "0.1.5"];

/// For `clients/node`: the gRPC library, its loader of .proto files, and a WebSocket library.
const NODE: [&str; 3] = [
    "@grpc/grpc-js@1.14.7",
    "@grpc/proto-loader@0.8.1",
    "ws@8.23.0",
];

const GRPCURL: &str = "github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.9.3";

/// Installs grpcurl, the Node libraries and the released clients into the cache.
///
/// # Errors
/// If a registry cannot be reached or a toolchain is missing; the message says which.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    for version in OPENSHELL {
        openshell(workspace, version)?;
    }
    node(workspace)?;
    grpcurl(workspace)
}

fn openshell(workspace: &Workspace, version: &str) -> Result<()> {
    let requirement = format!("openshell=={version}");
    let folder = workspace.clients().join(format!("openshell-{version}"));
    Kit::new(folder, &requirement)
        .ensure(|folder| python(workspace, folder, &[&requirement]))
        .context("a released client is missing")
}

fn node(workspace: &Workspace) -> Result<()> {
    let install = |folder: &Path| {
        let mut npm = workspace.command("npm");
        npm.args([
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
        ]);
        command::run(npm.arg(folder).args(NODE))
            .context("needs Node 20 or later with npm, and the npm registry")
    };
    Kit::new(workspace.clients().join("node"), NODE.join(" "))
        .ensure(install)
        .context("the Node client is missing")
}

fn grpcurl(workspace: &Workspace) -> Result<()> {
    let install = |folder: &Path| {
        let mut go = workspace.command("go");
        go.env("GOBIN", folder.join("bin"));
        command::run(go.args(["install", GRPCURL]))
            .context("needs Go 1.24 or later and the Go module proxy")
    };
    Kit::new(workspace.go(), GRPCURL)
        .ensure(install)
        .context("grpcurl is missing")
}
