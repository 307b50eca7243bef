//! Certificates: renewed while everything runs, missing, foreign, and out of date.

use std::fs;
use std::path::PathBuf;

use tidegate_e2e::Forward;
use tidegate_e2e::forward::{Access, Via};
use tidegate_testkit::certs::{Authority, CertFiles};
use tidegate_testkit::process::{Process, Signal};
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::{self, GENEROUS};

use crate::parts::{asking, gateway, identity, is_served, protected, supervisor};

const CLIENT: &str = "spiffe://tidegate/user/tester";

/// Puts a certificate where the gateway looks for its own, as a renewal does: beside it, then renamed.
fn install(new: &CertFiles, at: &CertFiles) {
    for (from, to) in [(&new.cert, &at.cert), (&new.key, &at.key)] {
        let beside = to.with_extension("new");
        fs::copy(from, &beside).unwrap();
        fs::rename(&beside, to).unwrap();
    }
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_to_new_connections_and_old_streams_live() {
    let (old, new) = (Authority::new().unwrap(), Authority::new().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| -> PathBuf { folder.path().join(name) };
    let served = CertFiles {
        cert: path("cert.pem"),
        key: path("key.pem"),
    };
    install(&old.server().unwrap(), &served);
    let (gateway, address) = gateway(protected(&served, &old)).await;
    let url = format!("https://{address}");
    let sandbox = identity(&old.ca(), Some(&old.sandbox("box").unwrap()));
    let supervisor = Process::spawn(supervisor(&[&url], sandbox)).unwrap();
    supervisor.line("session established").await;

    let client = old.client(CLIENT).unwrap();
    let mut access = Access::new([url]);
    access.ca = Some(old.ca());
    (access.cert, access.key) = (Some(client.cert.clone()), Some(client.key.clone()));
    let target = Target::echo().unwrap();
    let forward = Forward::start(Via::from_env(), &access, &target.address().to_string()).await;
    let stream = forward.connect().await;
    stream.write(b"before").await.unwrap();
    assert_eq!(stream.read(6).await, b"before");

    install(&new.server().unwrap(), &served);
    gateway.line("TLS certificates were read again").await;
    is_served(address, identity(&new.ca(), Some(&client))).await;
    let refused = Process::spawn(asking(address, identity(&old.ca(), Some(&client)))).unwrap();
    assert_eq!(refused.exit(GENEROUS).await.code(), Some(1), "{refused}");
    stream.write(b"after").await.unwrap();
    assert_eq!(stream.read(5).await, b"after");
    assert!(supervisor.is_running());
}

/// Half a renewal is no outage: what worked goes on working.
#[tokio::test]
async fn a_certificate_that_cannot_be_used_changes_nothing() {
    let authority = Authority::new().unwrap();
    let served = authority.server().unwrap();
    let (gateway, address) = gateway(protected(&served, &authority)).await;
    fs::write(&served.cert, "not a certificate").unwrap();
    gateway.line("cannot be used").await;
    let client = authority.client(CLIENT).unwrap();
    is_served(address, identity(&authority.ca(), Some(&client))).await;
}

/// SIGHUP has files read again that nobody could see to have changed, and says what came of it.
#[tokio::test]
async fn sighup_has_certificates_read_again() {
    let (old, new) = (Authority::new().unwrap(), Authority::new().unwrap());
    let served = old.server().unwrap();
    let (gateway, address) = gateway(protected(&served, &old)).await;
    let client = old.client(CLIENT).unwrap();
    is_served(address, identity(&old.ca(), Some(&client))).await;

    gateway.signal(Signal::HUP);
    gateway.line("TLS certificates were read again").await;
    is_served(address, identity(&old.ca(), Some(&client))).await;
    install(&new.server().unwrap(), &served);
    gateway.signal(Signal::HUP);
    let by_new = async || {
        let asked = Process::spawn(asking(address, identity(&new.ca(), Some(&client)))).unwrap();
        asked.exit(GENEROUS).await.success()
    };
    wait::until_async(GENEROUS, by_new).await.unwrap();

    fs::write(&served.cert, "not a certificate").unwrap();
    gateway.signal(Signal::HUP);
    gateway.line("the old ones stay").await;
    is_served(address, identity(&new.ca(), Some(&client))).await;
    assert!(gateway.is_running());
}

#[tokio::test]
async fn nobody_is_served_without_a_certificate_of_the_right_authority() {
    let (ours, foreign) = (Authority::new().unwrap(), Authority::new().unwrap());
    let (_gateway, address) = gateway(protected(&ours.server().unwrap(), &ours)).await;
    is_served(
        address,
        identity(&ours.ca(), Some(&ours.client(CLIENT).unwrap())),
    )
    .await;
    let expired = ours.expired_client(CLIENT).unwrap();
    let cases = [
        ("no certificate", identity(&ours.ca(), None)),
        (
            "a stranger's",
            identity(&ours.ca(), Some(&foreign.client(CLIENT).unwrap())),
        ),
        ("an expired one", identity(&ours.ca(), Some(&expired))),
        (
            "another gateway",
            identity(&foreign.ca(), Some(&ours.client(CLIENT).unwrap())),
        ),
        ("the system's authorities", Vec::new()),
    ];
    for (case, arguments) in cases {
        let asked = Process::spawn(asking(address, arguments)).unwrap();
        assert_eq!(
            asked.exit(GENEROUS).await.code(),
            Some(1),
            "{case}: {asked}"
        );
        let said = asked.stderr().line(|line| line.contains("TLS")).await;
        assert!(said.is_some(), "{case}: {asked}");
        if case == "no certificate" {
            let remedy = asked
                .stderr()
                .line(|line| line.contains("--cert and --key"));
            assert!(remedy.await.is_some(), "{asked}");
        }
    }
    let stranger = identity(&ours.ca(), Some(&foreign.sandbox("box").unwrap()));
    let url = format!("https://{address}");
    let supervisor = Process::spawn(supervisor(&[&url], stranger)).unwrap();
    supervisor.line("no session").await;
    assert!(supervisor.is_running(), "it waits for a better certificate");
}
