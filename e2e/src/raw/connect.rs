//! A raw HTTP/2 connection to a gateway, over TLS where the topology wants it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tidegate_testkit::certs::CertFiles;
use tidegate_testkit::raw_h2;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::World;
use crate::credentials::Credentials;

/// What a stream may bring before it is read.
const STREAM_WINDOW: u32 = 1 << 20;

/// Connects to `address` as a client of this world does, with windows as ours are.
///
/// # Errors
///
/// If the gateway cannot be reached, or lets nobody in.
pub async fn connect(world: &World, address: SocketAddr) -> io::Result<raw_h2::Client> {
    let mut settings = h2::client::Builder::new();
    settings
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(i32::MAX.unsigned_abs())
        .max_concurrent_reset_streams(100_000);
    connect_with(world, address, &settings).await
}

pub(super) async fn connect_with(
    world: &World,
    address: SocketAddr,
    settings: &h2::client::Builder,
) -> io::Result<raw_h2::Client> {
    let Some(credentials) = world.credentials() else {
        return raw_h2::Client::connect_with(address, settings).await;
    };
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let connector = TlsConnector::from(Arc::new(tls(credentials)));
    let name = ServerName::from(address.ip());
    raw_h2::Client::over(connector.connect(name, stream).await?, settings).await
}

fn tls(credentials: &Credentials) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    let ca = CertificateDer::from_pem_file(credentials.authority().ca());
    roots
        .add(ca.expect("the authority has a certificate"))
        .expect("it is one of an authority");
    let (chain, key) = load(credentials.client());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider knows current protocols")
        .with_root_certificates(roots)
        .with_client_auth_cert(chain, key);
    let mut config = config.expect("key and certificate belong together");
    config.alpn_protocols = vec![b"h2".to_vec()];
    config
}

fn load(files: &CertFiles) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::from_pem_file(&files.cert).expect("the certificate is PEM");
    let key = PrivateKeyDer::from_pem_file(&files.key).expect("the key is PEM");
    (vec![chain], key)
}
