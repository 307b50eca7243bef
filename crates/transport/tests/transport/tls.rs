//! TLS: whom each side trusts, files that change, and ends that are cut off.

use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderMap;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use tempfile::TempDir;
use tidegate_transport::{
    ClientTls, ConnectError, Connection, CredentialFault, Endpoint, Lost, Obstacle, Payload,
    Received, Server, ServerTls, listen,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::service::Routes;

use crate::common::*;

/// An authority and what it signs, as files in a directory of its own.
struct Authority {
    dir: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let dir = TempDir::new().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        std::fs::write(dir.path().join("ca.pem"), certificate.pem()).unwrap();
        Self {
            dir,
            issuer: Issuer::new(params, key),
        }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    /// Signs a certificate for `host` and writes it as `NAME.pem`, its key as `NAME.key`.
    fn sign(&self, name: &str, host: &str) {
        self.issue(name, CertificateParams::new(vec![host.to_owned()]).unwrap());
    }

    fn sign_expired(&self, name: &str, host: &str) {
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 2);
        self.issue(name, params);
    }

    fn issue(&self, name: &str, params: CertificateParams) {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    fn server(&self, client_ca: bool) -> Arc<ServerTls> {
        let ca = self.path("ca.pem");
        let ca = client_ca.then_some(ca.as_path());
        ServerTls::load(&self.path("server.pem"), &self.path("server.key"), ca).unwrap()
    }

    /// A client that trusts this authority and shows the certificate `identity`.
    fn client(&self, identity: Option<&str>) -> Arc<ClientTls> {
        let files = identity.map(|name| {
            (
                self.path(&format!("{name}.pem")),
                self.path(&format!("{name}.key")),
            )
        });
        let (cert, key) = files.unzip();
        let ca = self.path("ca.pem");
        Arc::new(ClientTls::load(Some(&ca), cert.as_deref(), key.as_deref()).unwrap())
    }
}

fn start(tls: Arc<ServerTls>) -> TestServer {
    TestServer::start(
        Server {
            tls: Some(tls),
            ..Server::default()
        },
        Routes::default(),
    )
}

#[tokio::test]
async fn a_connection_that_moves_to_another_shard_stays_encrypted() {
    let ours = Authority::new();
    ours.sign("server", "localhost");
    let mut server = start(ours.server(false));
    let connection = connect(server.addr.port(), ours.client(None))
        .await
        .unwrap();
    let mut lane = HeaderMap::new();
    lane.insert("tidegate-lane", http::HeaderValue::from_static("2"));
    let (mut up, _head) = connection.open(PATH, lane).unwrap();
    let mut stream = server.stream().await;
    assert_eq!(stream.connection.shard, 2);
    up.send(payload(b"over there")).unwrap();
    up.finish().unwrap();
    assert_eq!(
        soon(read_all(&mut stream.recv)).await,
        (b"over there".to_vec(), Received::End)
    );
}

async fn connect(port: u16, tls: Arc<ClientTls>) -> Result<Connection, ConnectError> {
    let endpoint = Endpoint::parse(&format!("https://localhost:{port}")).unwrap();
    soon(endpoint.with_tls(tls).connect()).await
}

#[track_caller]
fn tls_error(result: Result<Connection, ConnectError>) -> rustls::Error {
    match result.unwrap_err() {
        ConnectError::Tls { source, .. } => source,
        other => panic!("expected a TLS error, got {other}"),
    }
}

#[tokio::test]
async fn a_private_authority_is_trusted_and_no_other() {
    let ours = Authority::new();
    ours.sign("server", "localhost");
    let mut server = start(ours.server(false));
    let connection = connect(server.addr.port(), ours.client(None))
        .await
        .unwrap();
    let (_up, _head) = connection.open(PATH, HeaderMap::new()).unwrap();
    assert!(server.stream().await.connection.identity.is_none());

    let other = Authority::new();
    let error = tls_error(connect(server.addr.port(), other.client(None)).await);
    assert!(
        matches!(error, rustls::Error::InvalidCertificate(_)),
        "{error}"
    );
}

#[tokio::test]
async fn what_stands_in_the_way_is_told_by_kind() {
    let ours = Authority::new();
    ours.sign("server", "localhost");
    let server = start(ours.server(false));
    let port = server.addr.port();
    let obstacle = |result: Result<Connection, ConnectError>| result.unwrap_err().obstacle();

    let other = Authority::new();
    let unknown = connect(port, other.client(None)).await;
    assert_eq!(obstacle(unknown), Some(Obstacle::Authority));
    let by_address = Endpoint::parse(&format!("https://127.0.0.1:{port}")).unwrap();
    let unnamed = soon(by_address.with_tls(ours.client(None)).connect()).await;
    assert_eq!(obstacle(unnamed), Some(Obstacle::Host));
    let in_plaintext = Endpoint::parse(&format!("http://127.0.0.1:{port}")).unwrap();
    let unencrypted = soon(in_plaintext.connect()).await;
    assert_eq!(obstacle(unencrypted), Some(Obstacle::NotPlaintext));

    let plain = TestServer::plain();
    let encrypted = connect(plain.addr.port(), ours.client(None)).await;
    assert_eq!(obstacle(encrypted), Some(Obstacle::NotTls));

    let closed = TcpStream::connect(plain.addr).await.unwrap().local_addr();
    let away = connect(closed.unwrap().port(), ours.client(None)).await;
    assert_eq!(obstacle(away), None);

    ours.sign_expired("server", "localhost");
    let late = start(ours.server(false));
    let expired = connect(late.addr.port(), ours.client(None)).await;
    assert_eq!(obstacle(expired), Some(Obstacle::Time));
}

#[tokio::test]
async fn a_certificate_for_another_host_is_refused() {
    let ours = Authority::new();
    ours.sign("server", "elsewhere.example.org");
    let server = start(ours.server(false));
    let error = tls_error(connect(server.addr.port(), ours.client(None)).await);
    assert!(
        matches!(error, rustls::Error::InvalidCertificate(_)),
        "{error}"
    );
}

#[tokio::test]
async fn a_required_client_certificate_identifies() {
    let ours = Authority::new();
    ours.sign("server", "localhost");
    ours.sign("client", "client.example.org");
    let mut server = start(ours.server(true));
    let connection = connect(server.addr.port(), ours.client(Some("client")))
        .await
        .unwrap();
    let (_up, _head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let identity = server.stream().await.connection.identity.clone().unwrap();
    assert!(!identity.is_empty());
}

#[tokio::test]
async fn a_missing_or_foreign_client_certificate_is_refused() {
    let ours = Authority::new();
    ours.sign("server", "localhost");
    let server = start(ours.server(true));
    let error = tls_error(connect(server.addr.port(), ours.client(None)).await);
    assert!(matches!(error, rustls::Error::AlertReceived(_)), "{error}");

    // Signed by somebody else, shown to a server that we trust.
    let other = Authority::new();
    other.sign("client", "client.example.org");
    let (cert, key) = (other.path("client.pem"), other.path("client.key"));
    let foreign = ClientTls::load(Some(&ours.path("ca.pem")), Some(&cert), Some(&key)).unwrap();
    let error = tls_error(connect(server.addr.port(), Arc::new(foreign)).await);
    assert!(matches!(error, rustls::Error::AlertReceived(_)), "{error}");
}

#[tokio::test]
async fn sec_06_what_a_server_has_against_a_certificate_is_told() {
    let ours = Authority::new();
    ours.sign("server", "localhost");
    let server = start(ours.server(true));
    let fault = async |tls| {
        let connected = connect(server.addr.port(), tls).await;
        connected.unwrap_err().credential_fault()
    };
    assert_eq!(
        fault(ours.client(None)).await,
        Some(CredentialFault::Invalid)
    );
    ours.sign_expired("late", "client.example.org");
    let late = ours.client(Some("late"));
    assert_eq!(fault(late).await, Some(CredentialFault::Expired));
    // That we do not believe the server is not about our certificate.
    let stranger = Authority::new();
    assert_eq!(fault(stranger.client(None)).await, None);
}

#[tokio::test]
async fn changed_files_are_used_by_new_connections() {
    let ours = Authority::new();
    ours.sign("server", "elsewhere.example.org");
    let tls = ours.server(false);
    let server = start(Arc::clone(&tls));
    let client = ours.client(None);
    assert!(
        connect(server.addr.port(), Arc::clone(&client))
            .await
            .is_err()
    );

    ours.sign("server", "localhost");
    tls.reload().unwrap();
    let connection = connect(server.addr.port(), Arc::clone(&client))
        .await
        .unwrap();

    std::fs::write(ours.path("server.pem"), "nonsense").unwrap();
    tls.reload().unwrap_err();
    connect(server.addr.port(), Arc::clone(&client))
        .await
        .unwrap();
    assert!(connection.is_open());
}

#[tokio::test]
async fn a_client_reads_its_files_again() {
    let (ours, next) = (Authority::new(), Authority::new());
    next.sign("server", "localhost");
    let server = start(next.server(false));
    let client = ours.client(None);
    tls_error(connect(server.addr.port(), Arc::clone(&client)).await);
    let mut bundle = std::fs::read(ours.path("ca.pem")).unwrap();
    bundle.extend(std::fs::read(next.path("ca.pem")).unwrap());
    std::fs::write(ours.path("ca.pem"), bundle).unwrap();
    connect(server.addr.port(), client).await.unwrap();
}

#[tokio::test]
async fn plaintext_and_tls_do_not_mix() {
    let ours = Authority::new();
    ours.sign("server", "localhost");
    let plain = TestServer::plain();
    let error = connect(plain.addr.port(), ours.client(None))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            ConnectError::Tls { .. } | ConnectError::TlsBroken { .. }
        ),
        "{error}"
    );

    let encrypted = start(ours.server(false));
    let error = soon(Endpoint::parse(&encrypted.url()).unwrap().connect())
        .await
        .unwrap_err();
    assert!(matches!(error, ConnectError::Http2 { .. }), "{error}");
}

#[test]
fn half_an_identity_is_refused() {
    let ours = Authority::new();
    ours.sign("client", "client.example.org");
    let half = ClientTls::load(
        Some(&ours.path("ca.pem")),
        Some(&ours.path("client.pem")),
        None,
    );
    assert!(half.is_err());
    assert!(ServerTls::load(&ours.path("client.pem"), &ours.path("missing"), None).is_err());
    assert!(ServerTls::load(&ours.path("client.key"), &ours.path("client.key"), None).is_err());
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_setting() {
    let ours = Authority::new();
    for name in ["server", "client"] {
        ours.sign(name, "localhost");
    }
    let path = |name: &str| ours.path(name);
    let [ca, cert, key, other] = ["ca.pem", "server.pem", "server.key", "client.key"].map(path);
    let missing = path("missing");
    let client = |ca, cert, key| {
        let loaded = ClientTls::load(Some(ca), Some(cert), Some(key));
        loaded.unwrap_err().to_string()
    };
    let server = |cert, key, ca| {
        let loaded = ServerTls::load(cert, key, Some(ca));
        loaded.unwrap_err().to_string()
    };
    for (said, file, setting) in [
        (client(&missing, &cert, &key), &missing, "`ca`"),
        (client(&key, &cert, &key), &key, "`ca`"),
        (client(&ca, &missing, &key), &missing, "`cert`"),
        (client(&ca, &cert, &missing), &missing, "`key`"),
        (client(&ca, &cert, &cert), &cert, "`key`"),
        (client(&ca, &cert, &other), &other, "`key`"),
        (client(&ca, &cert, &other), &cert, "`cert`"),
        (server(&missing, &key, &ca), &missing, "`tls_cert`"),
        (server(&cert, &missing, &ca), &missing, "`tls_key`"),
        (server(&cert, &key, &missing), &missing, "`client_ca`"),
        (server(&cert, &key, &key), &key, "`client_ca`"),
        (server(&cert, &other, &ca), &cert, "`tls_cert`"),
        (server(&cert, &other, &ca), &other, "`tls_key`"),
    ] {
        let named = format!("{} ({setting})", file.display());
        assert!(said.contains(&named), "{named} in {said}");
    }
}

/// Carries bytes to `port` and, after `limit` of them came back, ends the connection with a FIN of
/// TCP: no close_notify, no END_STREAM.
fn cut_after(limit: usize, port: u16) -> (u16, JoinSet<()>) {
    let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
    let cut = listener.local_addr().unwrap().port();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let (client, _) = listener.accept().await;
        let server = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let (mut from_client, mut to_client) = client.into_split();
        let (from_server, mut to_server) = server.into_split();
        let up = async {
            tokio::io::copy(&mut from_client, &mut to_server)
                .await
                .unwrap_or(0)
        };
        let down = async {
            let mut piece = from_server.take(limit as u64);
            tokio::io::copy(&mut piece, &mut to_client).await.unwrap();
            to_client.shutdown().await.unwrap();
            std::future::pending::<()>().await;
        };
        tokio::join!(up, down);
    });
    (cut, tasks)
}

#[tokio::test]
async fn a_connection_cut_off_is_broken_and_never_an_end() {
    let ours = Authority::new();
    ours.sign("server", "localhost");
    let mut server = start(ours.server(false));
    let (port, _tasks) = cut_after(1 << 20, server.addr.port());
    let connection = connect(port, ours.client(None)).await.unwrap();
    let (up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let stream = server.stream().await;
    let mut back = stream.respond.headers(HeaderMap::new()).unwrap();
    let (_, mut down) = soon(head).await.unwrap();
    let sending = async {
        for _ in 0..64 {
            let mut left = 64 * 1024;
            while left > 0 {
                let Ok(capacity) = back.capacity(left).await else {
                    return;
                };
                let data = bytes::Bytes::from(vec![0; capacity]);
                if back.send(Payload::untracked(vec![data])).is_err() {
                    return;
                }
                left -= capacity;
            }
        }
    };
    // The server does not learn of it: the other direction is not cut.
    let ended = async {
        tokio::select! {
            ended = read_all(&mut down) => ended,
            () = sending => panic!("sent more than was let through"),
        }
    };
    let (bytes, end) = soon(ended).await;
    assert!(bytes.len() < 4 << 20);
    assert_eq!(
        end,
        Received::Lost(Lost::Broken(std::io::ErrorKind::UnexpectedEof))
    );
    drop(up);
}
