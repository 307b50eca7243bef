//! Whom a client trusts, and the certificate it shows.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::Resumption;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::files::{Identity, Stamp, roots};
use super::{ALPN, TlsError, TlsFile, file, half, provider};

/// TLS of a client, from files that are read again at the next connect after they change.
#[derive(Debug)]
pub struct ClientTls {
    files: Files,
    loaded: Mutex<(Stamp, Arc<ClientConfig>)>,
}

#[derive(Debug)]
struct Files {
    ca: Option<TlsFile>,
    identity: Option<Identity>,
}

impl ClientTls {
    /// Reads the authorities that servers' certificates must come from (by default the system's)
    /// and, if given, the certificate chain and key to show. All are PEM.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the file. A certificate needs its key and the other way round.
    pub fn load(
        ca: Option<&Path>,
        cert: Option<&Path>,
        key: Option<&Path>,
    ) -> Result<Self, TlsError> {
        let identity = match (cert, key) {
            (Some(cert), Some(key)) => Some(Identity {
                cert: file("cert", cert),
                key: file("key", key),
            }),
            (None, None) => None,
            (Some(_), None) => return Err(half("cert", "key")),
            (None, Some(_)) => return Err(half("key", "cert")),
        };
        let files = Files {
            ca: ca.map(|path| file("ca", path)),
            identity,
        };
        let loaded = Mutex::new((files.stamp(), Arc::new(files.config()?)));
        Ok(Self { files, loaded })
    }

    /// Trusts the system's authorities and shows no certificate.
    ///
    /// # Errors
    ///
    /// [`TlsError::NoSystemRoots`] where there are none.
    pub fn system() -> Result<Self, TlsError> {
        Self::load(None, None, None)
    }

    /// Returns what to connect with, read again if the files changed.
    pub(crate) fn connector(&self) -> Result<TlsConnector, TlsError> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = self.files.stamp();
        if loaded.0 != stamp {
            *loaded = (stamp, Arc::new(self.files.config()?));
        }
        Ok(TlsConnector::from(Arc::clone(&loaded.1)))
    }

    /// Parses the name that a server's certificate has to carry.
    pub(crate) fn server_name(host: &str) -> Result<ServerName<'static>, TlsError> {
        let name = ServerName::try_from(host.to_owned());
        name.map_err(|_| TlsError::ServerName(host.to_owned()))
    }
}

impl Files {
    fn config(&self) -> Result<ClientConfig, TlsError> {
        let roots = match &self.ca {
            Some(file) => roots(file)?,
            None => system_roots()?,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_root_certificates(roots);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (certificates, key) = identity.load()?;
                builder
                    .with_client_auth_cert(certificates, key)
                    .map_err(|error| identity.refused(error))?
            }
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.resumption = Resumption::disabled();
        Ok(config)
    }

    fn stamp(&self) -> Stamp {
        let identity = self
            .identity
            .iter()
            .flat_map(|Identity { cert, key }| [cert, key]);
        Stamp::of(self.ca.iter().chain(identity))
    }
}

/// Reads the system's authorities, passing over those that rustls does not understand.
fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(TlsError::NoSystemRoots);
    }
    Ok(roots)
}
