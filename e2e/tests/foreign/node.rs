//! Node's grpc-js with our .proto files: a client of other people that knows half-close.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use tidegate_e2e::tools::{client, run};
use tidegate_e2e::{Topology, World, every_topology};
use tidegate_testkit::content::Content;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait::GENEROUS;

use crate::{beside, world};

/// Runs the check `name` of `streams.mjs`.
async fn check(world: &World, name: &str, target: SocketAddr) {
    let access = world.access();
    let mut node = Command::new("node");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    node.env("PROTO", root.join("proto"));
    node.env("NODE_MODULES", client("node").join("node_modules"));
    node.arg(beside("streams.mjs")).arg(name);
    node.arg(world.client_address().to_string());
    node.arg(target.to_string());
    node.args([access.ca, access.cert, access.key].into_iter().flatten());
    assert_eq!(run(node).await, "ok\n", "{name}");
}

async fn streams_end_as_they_should(topology: Topology) {
    let world = world(topology).await;
    let echo = Target::echo().unwrap();
    check(&world, "unary", echo.address()).await;
    check(&world, "echo", echo.address()).await;
    assert_eq!(
        echo.next().await.until_closed().await.read_end,
        Some(Ended::Eof)
    );

    let target = Target::finish_first(Content::new(1 << 20, 1)).unwrap();
    check(&world, "targetFirst", target.address()).await;
    for _ in 0..2 {
        let seen = target.next().await.until_closed().await;
        assert_eq!(
            (seen.bytes_read, seen.read_end),
            (1 << 20, Some(Ended::Eof))
        );
    }

    let nobody = Target::silent().unwrap().address();
    check(&world, "refused", nobody).await;
    let resetting = [
        Step::SendContent(Content::new(1000, 1)),
        Step::Read(6),
        Step::Reset,
    ];
    check(&world, "reset", Target::start(resetting).unwrap().address()).await;

    for name in ["missingFin", "cancel", "deadline", "violation"] {
        check(&world, name, echo.address()).await;
        echo.next().await.until_reset(GENEROUS).await;
    }
    world.settle().await;
}

every_topology!(streams_end_as_they_should);
