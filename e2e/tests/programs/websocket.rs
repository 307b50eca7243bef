//! A WebSocket echo with Node's `ws` at both ends.

use std::{path::Path, process::Command};

use tidegate_e2e::tools::{client, run};
use tidegate_testkit::process::Process;

use crate::plain;

fn node(mode: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/websocket.mjs");
    let mut command = Command::new("node");
    command.env("NODE_MODULES", client("node").join("node_modules"));
    command.arg(script).arg(mode);
    command
}

#[tokio::test]
async fn a_web_socket_echoes_messages_of_every_length() {
    let world = plain().await;
    let server = Process::spawn(node("serve")).unwrap();
    let address = server.address_after("listening on").await;
    let forward = world.forward_to(&address.to_string()).await;
    let mut asking = node("ask");
    asking.arg(forward.address().port().to_string());
    assert_eq!(run(asking).await, "grüße still there 4321 done\n");
    world.settle().await;
}
