//! Who may connect: certificates on both sides, or nobody but this machine.

use std::net::SocketAddr;
use std::path::PathBuf;

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
        let protection = match (&self.tls_cert, &self.tls_key, &self.client_ca) {
            (Some(cert), Some(key), client_ca) => self.with_tls(cert, key, client_ca.as_ref()),
            (None, None, None) => Protection::Plaintext,
            (None, None, Some(_)) => {
                return Err(ConfigError::Conflict(
                    "`client_ca` is set without `tls_cert`: callers show certificates over TLS only; \
                     set `tls_cert` and `tls_key` too",
                ));
            }
            (Some(_), None, _) | (None, Some(_), _) => {
                return Err(ConfigError::Conflict(
                    "`tls_cert` and `tls_key` belong together: set both, or none",
                ));
            }
        };
        match protection {
            Protection::Authenticated { .. } => Ok(protection),
            Protection::Unauthenticated { .. } if !self.insecure_dev => Err(ConfigError::Conflict(
                "`tls_cert` is set without `client_ca`: anyone could connect; set `client_ca` to the \
                 authority of your callers' certificates, or --insecure-dev to serve this machine only",
            )),
            Protection::Plaintext if !self.insecure_dev => Err(ConfigError::Conflict(
                "no TLS is configured: set `tls_cert`, `tls_key` and `client_ca`, or --insecure-dev to \
                 serve this machine only",
            )),
            Protection::Unauthenticated { .. } | Protection::Plaintext => Ok(protection),
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
                remedy: "--insecure-dev binds the loopback only: use 127.0.0.1 or [::1], or configure \
                         `tls_cert`, `tls_key` and `client_ca` and leave --insecure-dev out",
            });
        }
        Ok(())
    }

    fn with_tls(&self, cert: &PathBuf, key: &PathBuf, client_ca: Option<&PathBuf>) -> Protection {
        let (cert, key) = (cert.clone(), key.clone());
        match client_ca.cloned() {
            Some(client_ca) => Protection::Authenticated {
                cert,
                key,
                client_ca,
            },
            None => Protection::Unauthenticated { cert, key },
        }
    }
}
