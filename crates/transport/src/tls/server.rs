//! The certificate of a server, and the authority that its clients' certificates need.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio::time::{MissedTickBehavior, interval};
use tokio_rustls::TlsAcceptor;

use super::files::{Identity, Stamp, roots};
use super::{ALPN, TlsError, TlsFile, file, provider};

/// How often files are looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

/// TLS of a server, from files that are read again when they change.
#[derive(Debug)]
pub struct ServerTls {
    files: Files,
    config: ArcSwap<ServerConfig>,
    seen: Mutex<Stamp>,
}

#[derive(Debug)]
struct Files {
    identity: Identity,
    client_ca: Option<TlsFile>,
}

impl ServerTls {
    /// Reads the certificate chain and key of the server and, if given, the authority that every
    /// client's certificate must come from. All are PEM.
    ///
    /// # Errors
    ///
    /// [`TlsError`] names the file.
    pub fn load(cert: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Arc<Self>, TlsError> {
        let identity = Identity {
            cert: file("tls_cert", cert),
            key: file("tls_key", key),
        };
        let files = Files {
            identity,
            client_ca: client_ca.map(|path| file("client_ca", path)),
        };
        let seen = Mutex::new(files.stamp());
        let config = ArcSwap::from_pointee(files.config()?);
        Ok(Arc::new(Self {
            files,
            config,
            seen,
        }))
    }

    /// Reads the files again. New connections use what they say; open ones are untouched.
    ///
    /// # Errors
    ///
    /// [`TlsError`], and what was in use stays in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        let stamp = self.files.stamp();
        let config = self.files.config()?;
        self.config.store(Arc::new(config));
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = stamp;
        Ok(())
    }

    /// Reads the files again whenever they change, for ever. Files that cannot be used, as halfway
    /// through a renewal, are logged and tried again.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; cancelling is how it ends.
    pub async fn watch(self: Arc<Self>) {
        let mut ticks = interval(WATCH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            self.look();
        }
    }

    /// Reads the files again if they changed. They are few and small, and read in place.
    fn look(&self) {
        let seen = self
            .seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if self.files.stamp() == seen {
            return;
        }
        match self.reload() {
            Ok(()) => tracing::info!("TLS certificates were read again"),
            Err(error) => tracing::warn!(%error, "TLS certificates changed and cannot be used"),
        }
    }

    /// Tells whether clients must show a certificate.
    pub fn requires_client_certificate(&self) -> bool {
        self.files.client_ca.is_some()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(self.config.load_full())
    }
}

impl Files {
    fn config(&self) -> Result<ServerConfig, TlsError> {
        let (certificates, key) = self.identity.load()?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let roots = Arc::new(roots(file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                    .build()
                    .map_err(|source| TlsError::Verifier {
                        file: file.clone(),
                        source,
                    })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder
            .with_single_cert(certificates, key)
            .map_err(|error| self.identity.refused(error))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }

    fn stamp(&self) -> Stamp {
        let Identity { cert, key } = &self.identity;
        Stamp::of([cert, key].into_iter().chain(&self.client_ca))
    }
}
