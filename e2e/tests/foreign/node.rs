//! Node's grpc-js with our .proto files: a client of other people that knows half-close.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tidegate_e2e::forward::Access;
use tidegate_e2e::tools::{client, run};
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::content::Content;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait::GENEROUS;

use crate::{GONE, arguments, beside, world};

/// Runs the check `name` of `streams.mjs`.
pub(crate) async fn check(access: &Access, name: &str, target: SocketAddr) {
    finish(node("streams.mjs", access, name, target), name).await;
}

/// Runs the check `name` of `commands.mjs`, which fails if a command has left the file `done`.
pub(crate) async fn command(access: &Access, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let nobody = ([127, 0, 0, 1], 9).into();
    let mut node = node("commands.mjs", access, name, nobody);
    let done = folder.path().join("done");
    node.env("DONE", &done);
    finish(node, name).await;
    assert!(!done.exists(), "{name}");
}

fn node(script: &str, access: &Access, name: &str, target: SocketAddr) -> Command {
    let mut node = Command::new("node");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    node.env("PROTO", root.join("proto"));
    node.env("NODE_MODULES", client("node").join("node_modules"));
    node.arg(beside(script)).arg(name);
    node.args(arguments(access, target));
    node
}

async fn finish(node: Command, name: &str) {
    assert_eq!(run(node).await, "ok\n", "{name}");
}

async fn streams_end_as_they_should(topology: Topology) {
    let world = world(topology).await;
    let access = world.access();
    let echo = Target::echo().unwrap();
    check(&access, "unary", echo.address()).await;
    check(&access, "echo", echo.address()).await;
    assert_eq!(
        echo.next().await.until_closed().await.read_end,
        Some(Ended::Eof)
    );

    let target = Target::finish_first(Content::new(1 << 20, 1)).unwrap();
    check(&access, "targetFirst", target.address()).await;
    for _ in 0..2 {
        let seen = target.next().await.until_closed().await;
        assert_eq!(
            (seen.bytes_read, seen.read_end),
            (1 << 20, Some(Ended::Eof))
        );
    }

    let nobody = Target::silent().unwrap().address();
    check(&access, "refused", nobody).await;
    let resetting = [
        Step::SendContent(Content::new(1000, 1)),
        Step::Read(6),
        Step::Reset,
    ];
    check(
        &access,
        "reset",
        Target::start(resetting).unwrap().address(),
    )
    .await;

    for name in ["missingFin", "cancel", "deadline", "violation"] {
        check(&access, name, echo.address()).await;
        echo.next().await.until_reset(GENEROUS).await;
    }
    world.settle().await;
}

async fn commands_end_as_they_should(topology: Topology) {
    let options = Options::new().gateway("restart_grace", "0s").commands();
    let world = World::start(topology, options).await;
    for name in [
        "conversation",
        "endOfRequest",
        "bulk",
        "openStdin",
        "unreadStdin",
        "terminal",
        "signal",
        "cancel",
        "refused",
        "oneRequest",
    ] {
        command(&world.access(), name).await;
        let supervisor = world.supervisor();
        supervisor.until_metric("tidegate_execs", 0.0, GONE).await;
    }
    world.settle().await;
}

every_topology!(streams_end_as_they_should, commands_end_as_they_should);
