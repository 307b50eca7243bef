//! `tidegate port-forward`

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use tidegate_testkit::content::Content;
use tidegate_testkit::process::Process;
use tidegate_testkit::record::Ended;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::{GENEROUS, until_async, within};

use crate::house::{House, SANDBOX, SOON, ended, event, tidegate};

#[tokio::test]
async fn cli_01_a_port_in_use_is_said_at_once_and_nobody_is_asked() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let gateway = TcpListener::bind("127.0.0.1:0").unwrap();
    gateway.set_nonblocking(true).unwrap();
    let port = taken.local_addr().unwrap().port();
    let url = format!("http://{}", gateway.local_addr().unwrap());
    let home = tempfile::tempdir().unwrap();
    let spec = format!("{port}:80");
    // The free one stands first: it must not be left behind either.
    let args = ["port-forward", "any", ":81", &spec, "--gateway", &url];
    let process = Process::spawn(tidegate(home.path(), &args)).unwrap();
    assert_eq!(ended(&process, SOON).await.code(), Some(1));
    let said = process.stderr().to_string();
    assert!(said.contains(&format!("127.0.0.1:{port}")), "{said}");
    assert!(said.contains("in use"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(process.stdout().to_string(), "");
    assert!(gateway.accept().is_err(), "the gateway was asked");
}

#[tokio::test]
async fn cli_02_the_port_can_be_learned_and_the_address_chosen() {
    let house = House::new().await;
    let target = Target::echo().unwrap();
    let spec = format!("0:{}", target.address().port());
    let text = house.run(&["port-forward", SANDBOX, &spec]);
    let local = text.address_after("Forwarding ").await;
    assert_eq!(
        text.line("Forwarding").await,
        format!(
            "Forwarding {local} -> {SANDBOX} localhost:{}",
            target.address().port()
        )
    );
    assert!(local.ip().is_loopback());
    // It listens by the time that it says so.
    let socket = Socket::connect(local).await.unwrap();
    socket.write(b"x").await.unwrap();
    assert_eq!(socket.read(1).await, b"x");
    let (_everywhere, local) = house.forward(&target, &["--address", "0.0.0.0"]).await;
    assert_eq!(local.ip().to_string(), "0.0.0.0");
}

#[tokio::test]
async fn cli_04_a_deleted_sandbox_is_told_and_new_connections_are_reset_until_it_is_back() {
    let mut house = House::new().await;
    let target = Target::echo().unwrap();
    let (forward, local) = house.forward(&target, &[]).await;
    let open = Socket::connect(local).await.unwrap();
    open.write(b"x").await.unwrap();
    open.read(1).await;
    house.output(&["sandboxes", "delete", SANDBOX]).await;
    assert_eq!(open.read_to_end_soon().await.read_end, Some(Ended::Reset));
    assert_eq!(event(&forward, "gone").await["reason"], "SANDBOX_NOT_FOUND");
    let begun = Instant::now();
    is_reset(local).await;
    // Nobody waits for a supervisor of a sandbox that is gone: that would take 15 s.
    assert!(begun.elapsed() < Duration::from_secs(10));
    house.supervisor_back().await;
    event(&forward, "restored").await;
    let again = Socket::connect(local).await.unwrap();
    again.write(b"y").await.unwrap();
    assert_eq!(again.read(1).await, b"y");
}

#[tokio::test]
async fn cli_04_exit_on_loss() {
    let house = House::new().await;
    let target = Target::echo().unwrap();
    let (forward, _) = house.forward(&target, &["--exit-on-loss"]).await;
    house.output(&["sandboxes", "delete", SANDBOX]).await;
    let status = ended(&forward, Duration::from_secs(5)).await;
    assert_eq!(status.code(), Some(1));
    let told = forward.line("\"error\"").await;
    assert!(told.contains("\"reason\":\"SANDBOX_NOT_FOUND\""), "{told}");
    assert!(told.contains("\"code\":\"NOT_FOUND\""), "{told}");
    let all = forward.stdout().to_string();
    assert!(
        !all.contains("reconnecting") && !all.contains("gone"),
        "{all}"
    );
}

#[tokio::test]
async fn an_idle_forward_is_told_within_a_second_that_its_sandbox_is_deleted() {
    let house = House::new().await;
    let target = Target::echo().unwrap();
    let (forward, _) = house.forward(&target, &[]).await;
    house.output(&["sandboxes", "delete", SANDBOX]).await;
    within(Duration::from_secs(1), "the end", event(&forward, "gone")).await;
}

#[tokio::test]
async fn an_unknown_sandbox_is_said_at_the_start() {
    let house = House::new().await;
    house.output(&["sandboxes", "delete", "nope"]).await;
    // A gateway that has just started is not sure, unless a sandbox was deleted.
    house.output(&["sandboxes", "delete", SANDBOX]).await;
    let forward = house.run(&["port-forward", SANDBOX, ":80"]);
    assert_eq!(ended(&forward, SOON).await.code(), Some(1));
    let said = forward.stderr().to_string();
    assert!(said.contains("SANDBOX_NOT_FOUND"), "{said}");
    assert!(said.contains("tidegate sandboxes"), "{said}");
    assert_eq!(forward.stdout().to_string(), "");
}

#[tokio::test]
async fn each_connection_is_an_opened_and_a_closed() {
    let house = House::new().await;
    let target = Target::answer_after_end().unwrap();
    let (forward, local) = house.forward(&target, &[]).await;
    let socket = Socket::connect(local).await.unwrap();
    socket.write(b"12345").await.unwrap();
    socket.shutdown_write().unwrap();
    assert_eq!(&socket.read_to_end_soon().await.head[..], b"OK 5\n");
    let opened = event(&forward, "opened").await;
    let closed = event(&forward, "closed").await;
    assert_eq!(opened["id"], closed["id"]);
    assert_eq!(opened["peer"], socket.local_address().unwrap().to_string());
    assert_eq!(
        (&closed["bytesUp"], &closed["bytesDown"]),
        (&5.into(), &5.into())
    );
    assert_eq!(closed["reason"], "FINISHED");
    assert!(closed["origin"].is_null());
}

#[tokio::test]
async fn a_target_that_refuses_is_a_reset_and_no_outage() {
    let house = House::new().await;
    let target = Target::echo().unwrap();
    let (forward, local) = house.forward(&target, &[]).await;
    drop(target);
    is_reset(local).await;
    let closed = event(&forward, "closed").await;
    assert_eq!(
        (&closed["reason"], &closed["origin"]),
        (&"TARGET_REFUSED".into(), &"target".into())
    );
    assert!(!forward.stdout().to_string().contains("reconnecting"));
}

#[tokio::test]
async fn a_lost_gateway_is_told_once_and_the_next_one_serves() {
    let mut house = House::new().await;
    let target = Target::echo().unwrap();
    let (forward, local) = house.forward(&target, &[]).await;
    let open = Socket::connect(local).await.unwrap();
    open.write(b"x").await.unwrap();
    open.read(1).await;
    house.gateway.kill();
    assert_eq!(open.read_to_end_soon().await.read_end, Some(Ended::Reset));
    assert_eq!(
        event(&forward, "reconnecting").await["reason"],
        "TRANSPORT_LOST"
    );
    is_reset(local).await;
    house.gateway_back().await;
    event(&forward, "restored").await;
    let again = Socket::connect(local).await.unwrap();
    again.write(b"y").await.unwrap();
    assert_eq!(again.read(1).await, b"y");
    let told = forward.stdout().to_string();
    assert_eq!(told.matches("reconnecting").count(), 1, "{told}");
    assert_eq!(told.matches("restored").count(), 1, "{told}");
}

#[tokio::test]
async fn a_connection_waits_for_a_supervisor_that_comes_back() {
    let mut house = House::new().await;
    let target = Target::echo().unwrap();
    let (forward, local) = house.forward(&target, &[]).await;
    house.supervisor.kill();
    event(&forward, "reconnecting").await;
    let early = Socket::connect(local).await.unwrap();
    early.write(b"x").await.unwrap();
    house.supervisor_back().await;
    assert_eq!(early.read(1).await, b"x");
    event(&forward, "restored").await;
}

#[tokio::test]
async fn ctrl_c_ends_it_although_connections_are_open() {
    let house = House::new().await;
    let target = Target::endless().unwrap();
    let (forward, local) = house.forward(&target, &[]).await;
    let client = Socket::connect(local).await.unwrap();
    client.read(100_000).await;
    forward.interrupt();
    // The target never ends: who waits for it would wait for ever.
    assert_eq!(ended(&forward, SOON).await.code(), Some(130));
    let closed = event(&forward, "closed").await;
    assert_eq!(
        (&closed["reason"], &closed["origin"]),
        (&"CLIENT_CANCELLED".into(), &"client".into())
    );
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    let connection = target.next().await;
    within(GENEROUS, "the target to notice", connection.until_closed()).await;
    let none_left = async || house.json(&["streams"]).await == serde_json::json!([]);
    until_async(SOON, none_left).await.unwrap();
}

#[tokio::test]
async fn sigterm_ends_it_too() {
    let house = House::new().await;
    let target = Target::echo().unwrap();
    let (forward, _) = house.forward(&target, &[]).await;
    forward.terminate();
    assert_eq!(ended(&forward, SOON).await.code(), Some(143));
}

#[tokio::test]
async fn a_killed_forward_is_a_reset_at_both_ends() {
    let house = House::new().await;
    let target = Target::never_reader().unwrap();
    let (forward, local) = house.forward(&target, &[]).await;
    let client = Socket::connect(local).await.unwrap();
    client.write(b"x").await.unwrap();
    let connection = target.next().await;
    forward.kill();
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    assert_eq!(
        connection.until_reset(GENEROUS).await.read_end,
        Some(Ended::Reset)
    );
}

#[tokio::test]
async fn much_goes_through_unchanged() {
    much_goes_through(&[]).await;
}

#[tokio::test]
async fn threads_change_nothing() {
    much_goes_through(&["--threads", "3"]).await;
}

async fn much_goes_through(args: &[&str]) {
    let house = House::new().await;
    let content = Content::new(30_000_000, 7);
    let target = Target::echo().unwrap();
    let (_forward, local) = house.forward(&target, args).await;
    let client = Socket::connect(local).await.unwrap();
    let upload = async {
        client.write_content(content).await.unwrap();
        client.shutdown_write().unwrap();
    };
    let (seen, ()) = tokio::join!(client.read_to_end_soon(), upload);
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
}

#[tokio::test]
async fn a_bad_spec_is_named_with_the_remedy() {
    let home = tempfile::tempdir().unwrap();
    let args = ["port-forward", "any", "8080:80:80"];
    let process = Process::spawn(tidegate(home.path(), &args)).unwrap();
    assert_eq!(ended(&process, SOON).await.code(), Some(2));
    let said = process.stderr().to_string();
    assert!(
        said.contains("8080:80:80") && said.contains("use a name or an address"),
        "{said}"
    );
}

/// A new connection is reset before a byte arrives; maybe before it knows that it is one.
async fn is_reset(local: SocketAddr) {
    match Socket::connect(local).await {
        Ok(socket) => {
            let seen = socket.read_to_end_soon().await;
            assert_eq!((seen.bytes_read, seen.read_end), (0, Some(Ended::Reset)));
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
}
