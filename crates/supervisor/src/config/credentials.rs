//! What the supervisor shows at a gateway: certificates, and a token.

use std::sync::Arc;

use tidegate_daemon::ConfigError;
use tidegate_transport::{ClientTls, Credentials, Endpoint, TlsError};

use super::Config;

impl Config {
    /// Reads the certificates to dial `gateways` with, if any of them is dialled with TLS.
    ///
    /// # Errors
    ///
    /// When a file cannot be used, or would be ignored.
    pub(crate) fn tls(&self, gateways: &[Endpoint]) -> Result<Option<Arc<ClientTls>>, TlsError> {
        let credentials = Credentials {
            ca: self.ca.file(),
            cert: self.cert.as_deref(),
            key: self.key.as_deref(),
        };
        credentials.load(gateways)
    }

    /// Refuses to show a token where others on the way can read it.
    ///
    /// # Errors
    ///
    /// Names the gateway that is dialled without TLS beyond this machine.
    pub(crate) fn check_token_is_safe(&self, gateways: &[Endpoint]) -> Result<(), ConfigError> {
        let is_read = |gateway: &&Endpoint| !gateway.is_tls() && !gateway.is_local();
        match gateways.iter().find(is_read) {
            Some(gateway) if self.token_file.is_some() => Err(ConfigError::conflict(format!(
                "`token_file` is set, and the gateway {} is dialled without TLS, where anyone on the \
                 way can read the token: write https:// in --gateway, or leave --token-file out",
                gateway.url()
            ))),
            Some(_) | None => Ok(()),
        }
    }
}
