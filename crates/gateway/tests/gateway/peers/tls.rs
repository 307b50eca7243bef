//! Gateways that show each other certificates.

use std::sync::Arc;

use tidegate_gateway::Config;
use tidegate_testkit::certs::{Authority, CertFiles};
use tidegate_transport::{ClientTls, Connection, Endpoint, Lost};
use tidegate_wire::frame::ForwardInit;
use tidegate_wire::{metadata, status};

use super::{directory, gateway, named};
use crate::common::{Running, name};

fn protected(id: &str, authority: &Authority, own: CertFiles) -> Config {
    let config = named(id);
    let url = config.peer_url.map(|url| url.replace("http:", "https:"));
    Config {
        insecure_dev: false,
        tls_cert: Some(own.cert),
        tls_key: Some(own.key),
        client_ca: Some(authority.ca()),
        peer_url: url,
        ..config
    }
}

async fn dial(gateway: &Running, authority: &Authority, id: &str) -> Connection {
    let own = authority.client(id).unwrap();
    let ca = authority.ca();
    let tls = ClientTls::load(Some(&ca), Some(&own.cert), Some(&own.key)).unwrap();
    let endpoint = Endpoint::parse(&format!("https://{}", gateway.addr)).unwrap();
    endpoint.with_tls(Arc::new(tls)).connect().await.unwrap()
}

/// The reason with which a forward through `gateway` ends before it began; the sandbox has a home that
/// refuses every relay.
async fn refused(gateway: &Running, authority: &Authority) -> String {
    let client = dial(gateway, authority, "spiffe://tidegate/user/me").await;
    let (mut send, head) = client
        .open(metadata::FORWARD_TCP, http::HeaderMap::new())
        .unwrap();
    let target = tidegate_lifecycle::Target::tcp("localhost", 80).unwrap();
    let total = tidegate_transport::Buffered::new();
    let ledger = tidegate_transport::Ledger::new(total);
    let init = ForwardInit::new(name("known"), target).encode();
    let payload = tidegate_transport::Payload::new(vec![init], &ledger);
    send.send(payload).unwrap();
    let answer: Result<_, Lost> = head.await;
    let (parts, _recv) = answer.unwrap();
    let origin = tidegate_lifecycle::Origin::Gateway;
    let end = status::parse(&parts.headers, origin).unwrap_err();
    end.reason.as_str().to_owned()
}

/// Claims a session that `owner` does not have, so that the answer tells whether it was asked.
async fn ghost(directory: &tidegate_directory::Memory, owner: &Config) {
    use tidegate_directory::{Claim, Directory as _};
    use tidegate_lifecycle::id::{InstanceId, SessionId};
    let claim = Claim {
        sandbox: name("known"),
        session: SessionId::new("ghost"),
        instance: InstanceId::new("i"),
        homes: 1,
        replaces: None,
    };
    let seat = directory.seat(owner.replica());
    seat.claim(claim).await.unwrap();
}

async fn asked_by(certificate: impl FnOnce(&Authority) -> CertFiles, map: Option<&str>) -> String {
    let authority = Authority::new().unwrap();
    let directory = directory().await;
    let mut owner = protected("gw0", &authority, authority.gateway("gw0").unwrap());
    if let Some(map) = map {
        let pair = tidegate_daemon::settings::Value::read(map);
        owner.peer_names = pair.unwrap();
    }
    ghost(&directory, &owner).await;
    let owner = gateway(&directory, owner).await;
    let asks = Config {
        session_wait: std::time::Duration::from_millis(300),
        ..protected("gw1", &authority, certificate(&authority))
    };
    let asks = gateway(&directory, asks).await;
    let reason = refused(&asks, &authority).await;
    asks.stop().await;
    owner.stop().await;
    reason
}

#[tokio::test]
async fn a_certificate_that_names_the_gateway_is_believed() {
    // It was let in, and had no session to offer: the search went on until its time was over.
    let reason = asked_by(|authority| authority.gateway("gw1").unwrap(), None).await;
    assert_eq!(reason, "NO_SESSION");
}

#[tokio::test]
async fn a_certificate_that_names_another_gateway_is_not() {
    let reason = asked_by(|authority| authority.gateway("gw9").unwrap(), None).await;
    assert_eq!(reason, "NOT_PERMITTED");
}

#[tokio::test]
async fn a_name_that_is_mapped_to_the_gateway_is_believed() {
    let map = Some("spiffe://tidegate/gateway/gw9=gw1");
    let reason = asked_by(|authority| authority.gateway("gw9").unwrap(), map).await;
    assert_eq!(reason, "NO_SESSION");
}

#[tokio::test]
async fn a_gateway_that_serves_tls_asks_no_other_in_plaintext() {
    let authority = Authority::new().unwrap();
    let directory = directory().await;
    ghost(&directory, &named("gw0")).await;
    let asks = protected("gw1", &authority, authority.gateway("gw1").unwrap());
    let asks = gateway(&directory, asks).await;
    assert_eq!(refused(&asks, &authority).await, "PEER_UNCONFIGURED");
    asks.stop().await;
}
