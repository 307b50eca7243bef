//! Real dials, on the loopback.

use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, UnixListener};

use super::*;

fn dialer(rules: &[&str]) -> Dialer {
    Dialer {
        allow: Allowlist::new(rules.iter().map(|rule| rule.parse().unwrap()).collect()),
        ssh_socket: None,
        limit: Duration::from_secs(5),
    }
}

async fn reason_of(dialer: &Dialer, host: &str, port: u16) -> Reason {
    let target = Target::tcp(host, port.into()).unwrap();
    dialer.dial(&target, None).await.unwrap_err().reason
}

async fn reaches(listener: &TcpListener, host: &str) {
    let port = listener.local_addr().unwrap().port();
    let target = Target::tcp(host, port.into()).unwrap();
    let dialer = dialer(&[]);
    let (plug, accepted) = tokio::join!(dialer.dial(&target, None), listener.accept());
    plug.unwrap_or_else(|end| panic!("{host}: {end:?}"));
    accepted.unwrap();
}

/// A port on which nothing listens.
async fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn a_dial_that_is_given_up_leaves_a_reset_and_no_end() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let dial = connect(listener.local_addr().unwrap());
    let _ = timeout(Duration::ZERO, dial).await; // the kernel connects whether we look or not
    let (mut accepted, _) = listener.accept().await.unwrap();
    let end = accepted.read(&mut [0]).await.unwrap_err();
    assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn sec_04_no_spelling_leads_off_the_loopback() {
    for host in [
        "169.254.169.254",
        "10.0.0.1",
        "0.0.0.0",
        "::",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "fe80::1",
    ] {
        assert_eq!(
            reason_of(&dialer(&[]), host, 80).await,
            Reason::TargetNotAllowed,
            "{host}"
        );
    }
}

#[tokio::test]
async fn sec_04_the_loopback_in_each_spelling_leads_to_the_loopback() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    for host in ["127.0.0.1", "localhost", "LOCALHOST.", "::ffff:127.0.0.1"] {
        reaches(&listener, host).await;
    }
    let listener = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.unwrap();
    for host in ["::1", "localhost"] {
        reaches(&listener, host).await;
    }
}

#[tokio::test]
async fn sec_04_numbers_are_names_and_judged_by_what_they_resolve_to() {
    // The cloud's metadata address and a private one, as old resolvers read them.
    for host in ["2852039166", "0xa9.254.43518", "0x0a.1"] {
        let reason = reason_of(&dialer(&[]), host, 80).await;
        let refused = matches!(reason, Reason::TargetNotAllowed | Reason::TargetUnreachable);
        assert!(refused, "{host}: {reason:?}");
    }
}

#[tokio::test]
async fn what_a_rule_allows_is_connected_to() {
    let refused = reason_of(&dialer(&["127.0.0.0/8:*"]), "127.0.0.1", free_port().await).await;
    assert_eq!(refused, Reason::TargetRefused);
}

#[tokio::test]
async fn nothing_that_listens_is_a_refusal_on_both_loopbacks() {
    let port = free_port().await;
    assert_eq!(
        reason_of(&dialer(&[]), "localhost", port).await,
        Reason::TargetRefused
    );
}

#[tokio::test]
async fn a_name_without_an_address_is_unreachable() {
    let reason = reason_of(&dialer(&[]), "no-such-name.invalid", 80).await;
    assert_eq!(reason, Reason::TargetUnreachable);
}

#[tokio::test]
async fn the_shorter_limit_counts() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let hole = socket.listen(1).unwrap();
    let address = hole.local_addr().unwrap();
    // The backlog takes two; what comes then is left without an answer.
    let _waiting = [
        TcpStream::connect(address).await.unwrap(),
        TcpStream::connect(address).await.unwrap(),
    ];
    let target = Target::tcp("127.0.0.1", address.port().into()).unwrap();
    let begun = Instant::now();
    let asked = Some(Duration::from_millis(200));
    let end = dialer(&[]).dial(&target, asked).await.unwrap_err();
    assert_eq!(end.reason, Reason::DialTimeout);
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn ssh_leads_to_the_socket_if_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ssh.sock");
    let missing = dialer(&[]).dial(&Target::Ssh, None).await.unwrap_err();
    assert_eq!(missing.reason, Reason::TargetUnreachable);

    let dialer = Dialer {
        ssh_socket: Some(path.clone()),
        ..dialer(&[])
    };
    let absent = dialer.dial(&Target::Ssh, None).await.unwrap_err();
    assert_eq!(absent.reason, Reason::TargetUnreachable);
    let listener = UnixListener::bind(&path).unwrap();
    let (plug, accepted) = tokio::join!(dialer.dial(&Target::Ssh, None), listener.accept());
    assert!(matches!(plug.unwrap(), Plug::Unix(_)));
    drop((accepted.unwrap(), listener));
    let refused = dialer.dial(&Target::Ssh, None).await.unwrap_err();
    assert_eq!(refused.reason, Reason::TargetRefused);
}
