//! A forward made of the shipped command.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tidegate_testkit::probe::{SocketState, open_sockets};
use tidegate_testkit::process::{Output, Process};
use tidegate_testkit::wait;

use super::report::{Closed, Reporter, Reports};
use super::{Access, Inner, Server};
use crate::SANDBOX;

pub(super) async fn start(access: &Access, target: &str) -> Inner {
    let process = Process::spawn(command(access, target)).expect("the command can be started");
    let line = process.line("\"listening\"").await;
    let event: Value = serde_json::from_str(&line).expect("events are JSON");
    let address = event["local"].as_str().and_then(|local| local.parse().ok());
    let (reporter, reports) = Reports::new();
    let events = process.stdout().clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("there is a runtime to be had");
        runtime.block_on(follow(events, reporter)); // until the command has ended
    });
    Inner {
        address: address.expect("the event says where it listens"),
        reports,
        server: Server::Cli(process),
    }
}

fn command(access: &Access, target: &str) -> Command {
    let mut command = crate::command::tidegate(access);
    command.args(["port-forward", SANDBOX, &format!("0:{target}")]);
    command.args(["--output", "json"]);
    command
}

/// Reads events until the command ends.
async fn follow(events: Output, reporter: Reporter) {
    let mut known = 0;
    while let Some(lines) = events.beyond(known).await {
        known += lines.len();
        for line in &lines {
            if let Some((peer, closed)) = read(line) {
                reporter.send_modify(|reports| {
                    reports.insert(peer, closed);
                });
            }
        }
    }
}

/// Reads one event, if it is the end of a connection.
fn read(line: &str) -> Option<(SocketAddr, Closed)> {
    let event: Value = serde_json::from_str(line).ok()?;
    if event["event"] != "closed" {
        return None;
    }
    let text = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    let number = |key: &str| event[key].as_u64().unwrap_or_default();
    let closed = Closed {
        reason: text("reason"),
        origin: text("origin"),
        bytes_up: number("bytesUp"),
        bytes_down: number("bytesDown"),
    };
    Some((text("peer").parse().ok()?, closed))
}

pub(super) async fn idle(
    process: &Process,
    address: SocketAddr,
    bound: Duration,
) -> Result<(), String> {
    let mut left = Vec::new();
    let idle = wait::until_async(bound, async || {
        left = open_sockets(process.id());
        left.retain(|socket| {
            socket.local.port() == address.port() && socket.state != SocketState::Listening
        });
        left.is_empty()
    });
    idle.await.map_err(|_| format!("{left:?} are open"))
}

pub(super) async fn end(process: &Process) {
    process.interrupt();
    process.exit(wait::GENEROUS).await;
}
