//! What is carried and what is secret is in no log, however much is logged.

use std::fs;

use tidegate_e2e::journal::assert_silent_about;
use tidegate_testkit::certs::Authority;
use tidegate_testkit::process::Process;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::GENEROUS;

use crate::parts::{gateway, identity, ours, protected, supervisor};

const PAYLOAD: &str = "payload-that-nobody-may-log";
const CLIENT_TOKEN: &str = "client-token-that-nobody-may-log";
const SUPERVISOR_TOKEN: &str = "supervisor-token-that-nobody-may-log";

#[tokio::test]
async fn no_log_holds_payload_or_a_secret() {
    let authority = Authority::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let tokens = [
        file("client", CLIENT_TOKEN),
        file("supervisor", SUPERVISOR_TOKEN),
    ];
    let (gateway, address) = gateway(protected(&authority.server().unwrap(), &authority)).await;
    let url = format!("https://{address}");
    let certificate = authority.sandbox("box").unwrap();
    let mut command = supervisor(&[&url], identity(&authority.ca(), Some(&certificate)));
    command.arg("--token-file").arg(&tokens[1]);
    let supervisor = Process::spawn(command).unwrap();
    supervisor.line("session established").await;

    let target = Target::echo().unwrap();
    let certificate = authority.client("spiffe://tidegate/user/tester").unwrap();
    let mut command = ours("tidegate");
    command
        .args(["--gateway", &url, "-vv", "--token-file"])
        .arg(&tokens[0]);
    command.args(identity(&authority.ca(), Some(&certificate)));
    command.args(["connect", "box", &target.address().to_string()]);
    command.stdin(fs::File::open(file("payload", PAYLOAD)).unwrap());
    let client = Process::spawn(command).unwrap();
    assert!(client.exit(GENEROUS).await.success(), "{client}");
    assert_eq!(
        client.stdout().line(|_| true).await.as_deref(),
        Some(PAYLOAD)
    );
    for process in [&supervisor, &gateway] {
        process.terminate();
        process.exit(GENEROUS).await;
    }
    for process in [&client, &supervisor, &gateway] {
        assert_silent_about(process, &[PAYLOAD, CLIENT_TOKEN, SUPERVISOR_TOKEN]);
    }
}
