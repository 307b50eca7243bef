//! The program: what it prints, what it refuses, and how it stops.

use std::process::Command;
use std::time::Duration;

use tidegate_testkit::process::Process;
use tidegate_testkit::raw_h2::Client;
use tonic::Code;

use crate::common::{Forward, init, is};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidegate-gateway");

fn refused(arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn what_stands_against_a_start_is_said_in_a_sentence() {
    assert!(refused(&["--listen", "127.0.0.1:0"]).contains("--insecure-dev"));
    let reach = refused(&["--listen", "0.0.0.0:0", "--insecure-dev"]);
    assert!(reach.contains("loopback"), "{reach}");
    let value = refused(&["--insecure-dev", "--max-streams", "many"]);
    assert!(
        value.contains("`max_streams`") && value.contains("\"many\""),
        "{value}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let error = refused(&["--insecure-dev", "--listen", &taken]);
    assert!(
        error.contains(&taken) && error.contains("`listen`"),
        "{error}"
    );
    let missing = [
        "--tls-cert",
        "/nonexistent/c",
        "--tls-key",
        "/nonexistent/k",
        "--client-ca",
        "x",
    ];
    assert!(refused(&missing).contains("/nonexistent/"));
}

#[test]
fn the_whole_configuration_is_printed_with_where_it_came_from() {
    let output = Command::new(PROGRAM)
        .args(["--print-config", "--session-wait", "3s"])
        .env("TIDEGATE_MAX_STREAMS", "7")
        .output()
        .unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    let line = |key: &str| page.lines().find(|line| line.starts_with(key)).unwrap();
    assert!(line("session_wait").contains("\"3s\""));
    assert!(line("session_wait").ends_with("# command line"));
    assert!(
        line("max_streams ").contains("= 7 ")
            && line("max_streams ").contains("TIDEGATE_MAX_STREAMS")
    );
}

#[tokio::test]
async fn sigterm_ends_what_is_open_and_exits_0() {
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--insecure-dev",
        "--sandboxes",
        "known",
    ];
    let gateway = Process::run(PROGRAM, arguments).unwrap();
    let addr = gateway.address_after("listening on").await;
    let client = Client::connect(addr).await.unwrap();
    let waiting = Forward::open(&client, init("known")).await;
    client.ping().await.unwrap();
    gateway.terminate();
    is(
        &waiting.outcome().await,
        Code::Unavailable,
        "GATEWAY_DRAINING",
    );
    drop(client);
    let status = gateway.exit(Duration::from_secs(8)).await;
    assert_eq!(status.code(), Some(0));
    let log = gateway.stderr().lines().join("\n");
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}
