//! The program itself: exit codes, signals, the admin address.

use std::sync::Arc;
use std::time::Duration;

use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_testkit::certs::Authority;
use tidegate_testkit::messages::FromSupervisor;
use tidegate_testkit::probe;
use tidegate_testkit::process::Process;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::{GENEROUS, until_async};
use tidegate_transport::{
    Listener, Server, ServerStream, ServerTls, Settings, Shards, StreamHandler, listen,
};
use tidegate_wire::status;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::service::Routes;

use crate::common::gateway::{Control, Gateway, claim};

const SOON: Duration = Duration::from_secs(5);

async fn start(gateway: &Gateway, more: &[&str]) -> (Process, Control) {
    let url = format!("http://{}", gateway.address());
    let arguments = ["--gateway", &url, "--sandbox", "box"];
    let process = run(arguments.iter().chain(more));
    (process, gateway.session().await)
}

fn run<'a>(arguments: impl IntoIterator<Item = &'a &'a str>) -> Process {
    Process::run(env!("CARGO_BIN_EXE_tidegate-supervisor"), arguments).unwrap()
}

#[tokio::test]
async fn sigterm_says_goodbye_and_exits_with_0() {
    let gateway = Gateway::start().await;
    let (process, mut control) = start(&gateway, &[]).await;
    process.line("session established").await;
    process.terminate();
    assert!(matches!(control.heard().await, FromSupervisor::Goodbye(_)));
    control.heard_or_end().await.unwrap_err();
    control.end(Code::Ok);
    assert_eq!(process.exit(SOON).await.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_insists() {
    let gateway = Gateway::start().await;
    let (process, mut control) = start(&gateway, &["--stop-grace", "60s"]).await;
    let echo = Target::echo().unwrap();
    control.ask("c1", echo.address().port()).await;
    control.dialled("c1").await.unwrap();
    let mut data = gateway.data().await;
    claim(&mut data).await.echo(b"open").await;
    process.interrupt();
    assert!(matches!(control.heard().await, FromSupervisor::Goodbye(_)));
    process.interrupt();
    assert_eq!(process.exit(SOON).await.code(), Some(1));
    let seen = echo.next().await.until_reset(SOON).await;
    assert!(seen.was_reset(), "{seen:?}");
}

#[tokio::test]
async fn giving_way_is_a_failure_that_says_to_whom() {
    let gateway = Gateway::start().await;
    let (process, mut control) = start(&gateway, &[]).await;
    let end = End::new(
        Origin::Gateway,
        Reason::Superseded,
        "superseded by instance 4711",
    );
    control.end_with(status::trailers(&end));
    assert_eq!(process.exit(SOON).await.code(), Some(1));
    process.line("superseded by instance 4711").await;
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_named() {
    for (arguments, named) in [
        (&["--sandbox", "box"][..], "gateway"),
        (&["--gateway", "ftp://x", "--sandbox", "box"], "ftp://x"),
        (
            &[
                "--gateway",
                "https://x",
                "--sandbox",
                "box",
                "--ca",
                "/none",
            ],
            "/none",
        ),
        (&["--config", "/none.toml"], "/none.toml"),
        (
            &[
                "--gateway",
                "http://127.0.0.1:1",
                "--sandbox",
                "box",
                "--token-file",
                "/none",
            ],
            "/none (`token_file`)",
        ),
        (
            &["--gateway", "http://x", "--sandbox", "box", "--ca", "/ca"],
            "`ca`",
        ),
        (
            &[
                "--gateway",
                "http://x",
                "--sandbox",
                "box",
                "--stop-grace",
                "soon",
            ],
            "soon",
        ),
    ] {
        let process = run(arguments);
        assert_eq!(process.exit(SOON).await.code(), Some(2), "{arguments:?}");
        process.line(named).await;
    }
}

/// Serves nothing, to callers with a certificate.
async fn serve(listener: Listener, tls: Arc<ServerTls>) {
    let shards = Shards::new(1).unwrap();
    let server = Arc::new(Server {
        settings: Settings::default(),
        tls: Some(tls),
        abort: CancellationToken::new(),
    });
    loop {
        let (stream, _) = listener.accept().await;
        let (server, shard) = (Arc::clone(&server), shards.get(0).clone());
        let stream = stream.into_std().unwrap();
        shards.get(0).spawn("connection", async move {
            let stream = TcpStream::from_std(stream).unwrap();
            let (routes, going) = (Routes::default(), CancellationToken::new());
            server
                .serve(stream, shard, Arc::new(Nothing), routes, going)
                .await;
        });
    }
}

struct Nothing;

impl StreamHandler for Nothing {
    fn wants(&self, _: &str) -> bool {
        false
    }

    fn handle(&self, _: ServerStream) {}
}

/// What a supervisor warns of that dials a gateway which asks for certificates.
async fn warning(authority: &Authority, more: &[&str]) -> String {
    let server = authority.server().unwrap();
    let tls = ServerTls::load(&server.cert, &server.key, Some(&authority.ca())).unwrap();
    let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!(
        "https://localhost:{}",
        listener.local_addr().unwrap().port()
    );
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(serve(listener, tls));
    let arguments = ["--gateway", &url, "--sandbox", "box", "--proxy", "off"];
    let process = run(arguments.iter().chain(more));
    process.line("no session, trying again").await
}

#[tokio::test]
async fn a_refused_certificate_is_warned_of_with_the_setting_to_change() {
    let (ours, foreign) = (Authority::new().unwrap(), Authority::new().unwrap());
    let [ca, strange] = [&ours, &foreign].map(|one| one.ca().display().to_string());
    let unshown = warning(&ours, &["--ca", &ca]).await;
    assert!(unshown.contains("--cert FILE and --key FILE"), "{unshown}");
    let untrusted = warning(&ours, &["--ca", &strange]).await;
    assert!(untrusted.contains("--ca FILE"), "{untrusted}");
}

#[tokio::test]
async fn an_admin_address_that_is_taken_is_said_with_what_to_do() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let arguments = [
        "--gateway",
        "http://x",
        "--sandbox",
        "box",
        "--admin",
        &taken,
    ];
    let process = run(&arguments);
    assert_eq!(process.exit(SOON).await.code(), Some(1));
    let line = process.line(&taken).await;
    assert!(line.contains("remedy=\"another process"), "{line}");
}

#[test]
fn the_whole_configuration_is_printed_with_where_it_came_from() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate-supervisor"))
        .args(["--print-config", "--sandbox", "box"])
        .env_clear()
        .env("TIDEGATE_STOP_GRACE", "3s")
        .env("TIDEGATE_PROXY", "http://me:hunter2@proxy:3128")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let page = String::from_utf8(output.stdout).unwrap();
    let line = |key: &str| page.lines().find(|line| line.starts_with(key)).unwrap();
    assert!(line("# gateway = URL").ends_with("# has to be set"));
    assert!(line("sandbox = \"box\"").ends_with("# command line"));
    assert!(line("stop_grace = \"3s\"").ends_with("# TIDEGATE_STOP_GRACE"));
    assert!(line("redial_min = \"500ms\"").ends_with("# default"));
    assert!(line("proxy").starts_with("proxy = \"http://proxy:3128\""));
}

#[tokio::test]
async fn the_admin_address_tells_health_and_metrics() {
    let gateway = Gateway::start().await;
    let (process, mut control) = start(&gateway, &["--admin", "127.0.0.1:0"]).await;
    let admin = process.address_after("admin listening on").await;
    let url = |path: &str| format!("http://{admin}/{path}");
    let get = async |path| {
        let url = url(path);
        tokio::task::spawn_blocking(move || probe::get(&url))
            .await
            .unwrap()
    };
    until_async(GENEROUS, async || get("readyz").await.is_ok())
        .await
        .unwrap();
    get("healthz").await.unwrap();
    let echo = Target::echo().unwrap();
    control.ask("c1", echo.address().port()).await;
    control.dialled("c1").await.unwrap();
    let mut data = gateway.data().await;
    let mut relay = claim(&mut data).await;
    relay.echo(b"counted").await;
    let text = get("metrics").await.unwrap();
    for line in [
        "tidegate_sessions{state=\"live\"} 1",
        "tidegate_streams{kind=\"forward\",state=\"open\"} 1",
        "tidegate_stream_bytes_total{direction=\"upstream\"} 7",
        "tidegate_streams_opened_total{kind=\"forward\",route=\"target\"} 1",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    assert!(text.contains("tidegate_process_open_fds"), "{text}");
    drop(control);
    until_async(GENEROUS, async || get("readyz").await.is_err())
        .await
        .unwrap();
}
