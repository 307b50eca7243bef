//! The program: what it prints, what it refuses, and how it stops.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use tidegate_testkit::process::Process;
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait::{GENEROUS, until_async};
use tonic::Code;

use crate::common::{Forward, init, is};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidegate-gateway");

fn refused(code: i32, arguments: &[&str]) -> String {
    let output = Command::new(PROGRAM)
        .args(arguments)
        .env_clear()
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("error: "), "{said}");
    said
}

#[test]
fn what_stands_against_a_start_is_said_in_a_sentence() {
    assert!(refused(2, &["--listen", "127.0.0.1:0"]).contains("--insecure-dev"));
    let reach = refused(2, &["--listen", "0.0.0.0:0", "--insecure-dev"]);
    assert!(reach.contains("loopback"), "{reach}");
    let value = refused(2, &["--insecure-dev", "--max-streams", "many"]);
    assert!(
        value.contains("`max_streams`") && value.contains("\"many\""),
        "{value}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let error = refused(1, &["--insecure-dev", "--listen", &taken]);
    for word in [&taken, "`listen`", "another process"] {
        assert!(error.contains(word), "{word} in {error}");
    }
    // An address of documentation, RFC 5737: nobody's.
    let away = [
        "--insecure-dev",
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "192.0.2.1:0",
    ];
    let error = refused(1, &away);
    for word in ["192.0.2.1:0", "`admin`", "127.0.0.1"] {
        assert!(error.contains(word), "{word} in {error}");
    }
    let missing = [
        "--tls-cert",
        "/nonexistent/c",
        "--tls-key",
        "/nonexistent/k",
        "--client-ca",
        "x",
    ];
    let error = refused(2, &missing);
    assert!(error.contains("/nonexistent/k (`tls_key`)"), "{error}");
}

#[test]
fn a_bad_value_is_refused_alike_wherever_it_was_set() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    std::fs::write(&path, "insecure_dev = true\nthreads = 0").unwrap();
    let path = path.to_str().unwrap();
    for arguments in [
        &["--insecure-dev", "--threads", "0"][..],
        &["--config", path],
        &["--print-config", "--threads", "0"],
    ] {
        let said = refused(2, arguments);
        for word in ["`threads`", "\"0\"", "1 to 1024", "--help"] {
            assert!(said.contains(word), "{word} in {said}");
        }
    }
    assert!(refused(2, &["--config", "/none.toml"]).contains("/none.toml"));
    assert!(refused(2, &["--no-such-flag"]).contains("--no-such-flag"));
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
async fn sigterm_ends_what_is_open_at_the_deadline_and_exits_0() {
    let arguments = [
        "--drain-deadline",
        "0s",
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

#[tokio::test]
async fn ha_10_a_second_signal_ends_at_once_and_says_the_same() {
    let arguments = [
        "--listen",
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
    gateway.line("leaving").await;
    gateway.interrupt();
    is(
        &waiting.outcome().await,
        Code::Unavailable,
        "GATEWAY_DRAINING",
    );
    let status = gateway.exit(Duration::from_secs(8)).await;
    assert_eq!(status.code(), Some(0));
}

/// Whoever read the log may be gone before the gateway is, as behind `| head`.
#[tokio::test]
async fn a_log_that_nobody_reads_stops_nothing() {
    let mut gateway = Command::new(PROGRAM)
        .args(["--insecure-dev", "--listen", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(gateway.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("listening") {
        line.clear();
        assert!(log.read_line(&mut line).unwrap() > 0, "it has ended");
    }
    drop(log);
    let told = Command::new("kill").arg(gateway.id().to_string()).status();
    assert!(told.unwrap().success());
    let ended = until_async(GENEROUS, async || gateway.try_wait().unwrap().is_some()).await;
    if ended.is_err() {
        gateway.kill().unwrap();
    }
    assert_eq!(gateway.wait().unwrap().code(), Some(0));
}
