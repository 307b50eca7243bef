//! grpcurl, which learns everything about the service by reflection.

use std::process::Command;

use tidegate_e2e::tools::{run, shell};
use tidegate_e2e::{Topology, World, every_topology};
use tidegate_testkit::target::Target;

use crate::world;

/// grpcurl with the world's certificates and these arguments, the address where they say `@`.
fn grpcurl(world: &World, arguments: &[&str]) -> Command {
    let cache = std::env::home_dir()
        .unwrap()
        .join(".cache/tidegate/go/bin/grpcurl");
    let mut command = Command::new(if cache.is_file() {
        cache
    } else {
        "grpcurl".into()
    });
    let access = world.access();
    match (access.ca, access.cert, access.key) {
        (Some(ca), Some(cert), Some(key)) => {
            command
                .arg("-cacert")
                .arg(ca)
                .arg("-cert")
                .arg(cert)
                .arg("-key")
                .arg(key);
        }
        _ => {
            command.arg("-plaintext");
        }
    }
    let address = world.client_address().to_string();
    command.args(arguments.iter().map(|argument| {
        if *argument == "@" {
            &*address
        } else {
            argument
        }
    }));
    command
}

async fn asks_by_reflection(topology: Topology) {
    let world = world(topology).await;
    let ask = async |arguments: &[&str]| run(grpcurl(&world, arguments)).await;
    let services = ask(&["@", "list"]).await;
    for service in [
        "grpc.health.v1.Health",
        "openshell.v1.OpenShell",
        "tidegate.v1.Operator",
    ] {
        assert!(services.lines().any(|line| line == service), "{services}");
    }
    let methods = ask(&["@", "list", "openshell.v1.OpenShell"]).await;
    assert!(
        methods.contains("openshell.v1.OpenShell.ForwardTcp\n"),
        "{methods}"
    );
    assert!(
        ask(&["@", "grpc.health.v1.Health/Check"])
            .await
            .contains("\"SERVING\"")
    );
    let request = r#"{"name": "box"}"#;
    let answer = ask(&["-d", request, "@", "openshell.v1.OpenShell/GetSandbox"]).await;
    assert!(answer.contains("SANDBOX_PHASE_READY"), "{answer}");
    world.settle().await;
}

async fn refusals_are_explained(topology: Topology) {
    let world = world(topology).await;
    let proto = tempfile::tempdir().unwrap();
    let text = "syntax = \"proto3\"; package openshell.v1; message Nothing {}
        service OpenShell { rpc CreateSandbox(Nothing) returns (Nothing); }";
    std::fs::write(proto.path().join("x.proto"), text).unwrap();
    let path = proto.path().to_str().unwrap();
    let create = [
        "-import-path",
        path,
        "-proto",
        "x.proto",
        "@",
        "openshell.v1.OpenShell/CreateSandbox",
    ];
    let said = failing(grpcurl(&world, &create)).await;
    assert!(
        said.contains("Code: Unimplemented") && said.contains("this is a Tidegate gateway"),
        "{said}"
    );

    let request = r#"{"name": "nobody"}"#;
    let said = failing(grpcurl(
        &world,
        &["-d", request, "@", "openshell.v1.OpenShell/GetSandbox"],
    ))
    .await;
    assert!(
        said.contains("Code: NotFound") && said.contains(REASON),
        "{said}"
    );
    world.settle().await;
}

async fn forwards_what_it_reads(topology: Topology) {
    let world = world(topology).await;
    let target = Target::answer_after_end().unwrap();
    let (ip, port) = (target.address().ip(), target.address().port());
    // "aGVsbG8=" is hello; no capabilities, so the end of the request is FIN
    let frames = format!(
        r#"{{"init": {{"sandbox": "box", "tcp": {{"host": "{ip}", "port": {port}}}}}}} {{"data": "aGVsbG8="}}"#
    );
    let command = grpcurl(
        &world,
        &["-d", "@-", "@", "openshell.v1.OpenShell/ForwardTcp"],
    );
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words = words.map(|word| match word.to_str() {
        Some("@-") => "@".into(),
        _ => word.to_owned(),
    });
    let words: Vec<_> = std::iter::once(frames.into()).chain(words).collect();
    let answer = shell("frames=$1; shift; \"$@\" <<< \"$frames\"", &words).await;
    assert!(answer.contains("T0sgNQo="), "OK 5 and a newline: {answer}");
    world.settle().await;
}

/// SANDBOX_NOT_FOUND as grpcurl shows the first field of a detail that reflection does not describe.
const REASON: &str = "\"ChFTQU5EQk9YX05PVF9GT1VORB";

/// What a command that fails writes to standard error.
async fn failing(command: Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.collect();
    shell("! \"$@\" 2>&1", &words).await
}

every_topology!(
    asks_by_reflection,
    refusals_are_explained,
    forwards_what_it_reads
);
