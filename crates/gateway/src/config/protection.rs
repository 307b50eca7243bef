//! Who may connect: certificates on both sides, or nobody but this machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use tidegate_daemon::settings::Remedy;

use super::{Config, ConfigError};

/// How the listening address is protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protection {
    /// TLS, and every caller shows a certificate.
    Authenticated {
        /// The server's certificate.
        cert: PathBuf,
        /// Its key.
        key: PathBuf,
        /// The authority of callers' certificates.
        client_ca: PathBuf,
    },
    /// TLS, and callers are not asked who they are. Loopback only.
    Unauthenticated {
        /// The server's certificate.
        cert: PathBuf,
        /// Its key.
        key: PathBuf,
    },
    /// Plaintext. Loopback only.
    Plaintext,
}

impl Config {
    /// Decides how the gateway is protected.
    ///
    /// # Errors
    ///
    /// When keys are missing that belong together, or the result is not safe and was not asked for.
    pub fn protection(&self) -> Result<Protection, ConfigError> {
        match (
            self.tls_cert.clone(),
            self.tls_key.clone(),
            self.client_ca.clone(),
        ) {
            (Some(cert), Some(key), Some(client_ca)) => Ok(Protection::Authenticated {
                cert,
                key,
                client_ca,
            }),
            (Some(cert), Some(key), None) if self.insecure_dev => {
                Ok(Protection::Unauthenticated { cert, key })
            }
            (None, None, None) if self.insecure_dev => Ok(Protection::Plaintext),
            (Some(_), Some(_), None) => Err(ConfigError::conflict(
                "`tls_cert` is set without `client_ca`: anyone could connect; set `client_ca` to the \
                 authority of your callers' certificates, or --insecure-dev to serve this machine only",
            )),
            (None, None, None) => Err(ConfigError::conflict(
                "no TLS is configured: set `tls_cert`, `tls_key` and `client_ca`, or --insecure-dev to \
                 serve this machine only",
            )),
            (None, None, Some(_)) => Err(ConfigError::conflict(
                "`client_ca` is set without `tls_cert`: callers show certificates over TLS only; set \
                 `tls_cert` and `tls_key` too",
            )),
            (Some(_), None, _) | (None, Some(_), _) => Err(ConfigError::conflict(
                "`tls_cert` and `tls_key` belong together: set both, or none",
            )),
        }
    }

    /// Refuses an address that others can reach when nobody is asked who they are.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Range`] names the address.
    pub fn check_reach(&self, addr: SocketAddr) -> Result<(), ConfigError> {
        if self.insecure_dev && !addr.ip().to_canonical().is_loopback() {
            return Err(ConfigError::Range {
                key: "listen",
                value: addr.to_string(),
                remedy: Remedy::new(
                    "--insecure-dev binds the loopback only: use 127.0.0.1 or [::1], or configure \
                     `tls_cert`, `tls_key` and `client_ca` and leave --insecure-dev out",
                ),
            });
        }
        Ok(())
    }
}
