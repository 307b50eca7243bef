//! Other people's clients against real daemons: they hold no line of ours, so they tell whether the
//! wire is what we say.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod balanced;
mod grpcurl;
mod node;
mod python;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_e2e::forward::Access;
use tidegate_e2e::{Options, Topology, World};

/// How long a tree of processes may live on when its command has to end.
const GONE: Duration = Duration::from_secs(5);

/// The usual programs, and a gateway that knows from its first moment which sandboxes there are.
async fn world(topology: Topology) -> World {
    World::start(topology, Options::new().gateway("restart_grace", "0s")).await
}

/// A file beside these tests.
fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/foreign")
        .join(name)
}

/// What all scripts are told: `ADDRESS TARGET [CA [CERT KEY]]`.
fn arguments(access: &Access, target: SocketAddr) -> Vec<OsString> {
    let (_, address) = access.gateways[0].split_once("://").unwrap();
    let files = [&access.ca, &access.cert, &access.key];
    let mut arguments = vec![address.into(), target.to_string().into()];
    arguments.extend(files.into_iter().flatten().map(OsString::from));
    arguments
}
