//! TLS from a folder of PEM files (`chain::certificates` writes it).

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The name every certificate of the bench is good for.
pub(crate) const SERVER_NAME: &str = "localhost";

/// That name as rustls wants it.
pub(super) fn server_name() -> ServerName<'static> {
    ServerName::try_from(SERVER_NAME).expect("localhost is a host name")
}

/// A server that shows the gateway's certificate and asks for the client's.
pub(super) fn acceptor(folder: &Path) -> Result<TlsAcceptor> {
    let roots = Arc::new(roots(folder)?);
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build()?;
    let (chain, key) = identity(folder, "gateway")?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A client that shows the client's certificate.
pub(super) fn connector(folder: &Path) -> Result<TlsConnector> {
    Ok(TlsConnector::from(Arc::new(client(folder, "client")?)))
}

/// A client that shows the supervisor's certificate and speaks HTTP/2.
pub(super) fn h2_connector(folder: &Path) -> Result<TlsConnector> {
    let mut config = client(folder, "supervisor")?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

fn client(folder: &Path, who: &str) -> Result<ClientConfig> {
    let (chain, key) = identity(folder, who)?;
    Ok(ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots(folder)?)
        .with_client_auth_cert(chain, key)?)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(folder: &Path) -> Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate(&folder.join("ca.pem"))?)?;
    Ok(roots)
}

fn identity(
    folder: &Path,
    who: &str,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let key = folder.join(format!("{who}.key"));
    let chain = vec![certificate(&folder.join(format!("{who}.pem")))?];
    let key = PrivateKeyDer::from_pem_file(&key).with_context(|| key.display().to_string())?;
    Ok((chain, key))
}

fn certificate(path: &Path) -> Result<CertificateDer<'static>> {
    CertificateDer::from_pem_file(path).with_context(|| path.display().to_string())
}
