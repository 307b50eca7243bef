//! The files of TLS: what goes together, and what would be ignored.

use std::sync::Arc;

use tidegate_daemon::ConfigError;
use tidegate_transport::{ClientTls, Endpoint};

use super::Config;
use crate::StartError;

impl Config {
    /// Reads the certificates to dial `gateways` with, if any of them is dialled with TLS.
    ///
    /// # Errors
    ///
    /// When a key or a file cannot be used, or would be ignored.
    pub(crate) fn tls(&self, gateways: &[Endpoint]) -> Result<Option<Arc<ClientTls>>, StartError> {
        self.check_pair()?;
        if let Some(plain) = gateways.iter().find(|gateway| !gateway.is_tls()) {
            self.check_unused(&plain.url())?;
        }
        if !gateways.iter().any(Endpoint::is_tls) {
            return Ok(None);
        }
        let (cert, key) = (self.cert.as_deref(), self.key.as_deref());
        let tls = ClientTls::load(self.ca.file(), cert, key)?;
        Ok(Some(Arc::new(tls)))
    }

    /// A certificate is nothing without its key, and a key nothing without its certificate.
    fn check_pair(&self) -> Result<(), ConfigError> {
        let (set, missing) = match (&self.cert, &self.key) {
            (Some(_), None) => ("cert", "key"),
            (None, Some(_)) => ("key", "cert"),
            (Some(_), Some(_)) | (None, None) => return Ok(()),
        };
        Err(ConfigError::conflict(format!(
            "`{set}` is set without `{missing}`: they belong together, set both or none"
        )))
    }

    /// Whoever names a certificate means TLS.
    fn check_unused(&self, url: &str) -> Result<(), ConfigError> {
        let files = [
            ("ca", self.ca.file().is_some()),
            ("cert", self.cert.is_some()),
            ("key", self.key.is_some()),
        ];
        let Some((file, _)) = files.into_iter().find(|(_, is_set)| *is_set) else {
            return Ok(());
        };
        Err(ConfigError::conflict(format!(
            "`{file}` is set, and the gateway {url} is dialled without TLS, which would ignore it: \
             write https://, or leave `ca`, `cert` and `key` out"
        )))
    }
}
