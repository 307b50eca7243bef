//! A gateway that asks for certificates.

use std::path::PathBuf;
use std::sync::Arc;

use tidegate_gateway::{BindError, Config, Gateway};
use tidegate_testkit::certs::Authority;
use tidegate_transport::{ClientTls, Endpoint};
use tidegate_wire::unary::{Client, ServiceStatus};

use crate::common::{Running, config};

fn asked(authority: &Authority) -> Config {
    let server = authority.server().unwrap();
    Config {
        insecure_dev: false,
        tls_cert: Some(server.cert),
        tls_key: Some(server.key),
        client_ca: Some(authority.ca()),
        ..config()
    }
}

fn endpoint(gateway: &Running, tls: ClientTls) -> Endpoint {
    let url = format!("https://localhost:{}", gateway.addr.port());
    Endpoint::parse(&url).unwrap().with_tls(Arc::new(tls))
}

#[tokio::test]
async fn callers_with_a_certificate_of_the_authority_are_served_and_no_others() {
    let (authority, stranger) = (Authority::new().unwrap(), Authority::new().unwrap());
    let gateway = Running::start(asked(&authority)).await;
    let ca: PathBuf = authority.ca();
    let user = authority.client("spiffe://tidegate/user/me").unwrap();
    let tls = ClientTls::load(Some(&ca), Some(&user.cert), Some(&user.key)).unwrap();
    let client = Client::new(endpoint(&gateway, tls).connect().await.unwrap());
    assert_eq!(
        client.health().await.unwrap().status,
        ServiceStatus::Healthy
    );
    assert_eq!(
        client.current_user().await.unwrap().identity_provider,
        "mtls"
    );

    let other = stranger.client("spiffe://tidegate/user/me").unwrap();
    for tls in [
        ClientTls::load(Some(&ca), None, None).unwrap(),
        ClientTls::load(Some(&ca), Some(&other.cert), Some(&other.key)).unwrap(),
    ] {
        // The refusal comes with the handshake, or with the first thing read after it.
        if let Ok(connection) = endpoint(&gateway, tls).connect().await {
            assert!(Client::new(connection).health().await.is_err());
        }
    }
    gateway.stop().await;
}

#[tokio::test]
async fn certificates_without_an_authority_serve_the_loopback_only_when_asked() {
    let authority = Authority::new().unwrap();
    let unasked = Config {
        client_ca: None,
        ..asked(&authority)
    };
    let refused = Gateway::bind(unasked.clone()).await.unwrap_err();
    assert!(matches!(refused, BindError::Config(_)), "{refused}");
    let gateway = Running::start(Config {
        insecure_dev: true,
        ..unasked
    })
    .await;
    let tls = ClientTls::load(Some(&authority.ca()), None, None).unwrap();
    let client = Client::new(endpoint(&gateway, tls).connect().await.unwrap());
    assert_eq!(client.current_user().await.unwrap().subject, "anonymous");
    gateway.stop().await;
}
