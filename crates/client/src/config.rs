//! What a client must know to reach a gateway.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tidegate_transport::proxy::InvalidProxy;
use tidegate_transport::{ClientTls, Endpoint, EndpointError, ProxyRules, TlsError};

/// Where the gateways are and how to prove who one is.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// One URL or several, `http://` or `https://`; the next is taken when one is gone.
    pub gateways: Vec<String>,
    /// The authority that signed the gateway's certificate; unset: those of the system.
    pub ca: Option<PathBuf>,
    /// A certificate of our own, with its key.
    pub cert: Option<PathBuf>,
    /// The key of the certificate.
    pub key: Option<PathBuf>,
    /// A bearer token, sent over TLS only.
    pub token: Option<String>,
}

/// Why there can be no client.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// No gateway is named.
    #[error("no gateway is given: name one, such as http://127.0.0.1:7070")]
    NoGateway,
    /// A gateway's URL is none.
    #[error("the gateway cannot be used: {0}")]
    Url(#[from] EndpointError),
    /// A certificate without its key, or the other way round.
    #[error("`{given}` is given without `{missing}`")]
    HalfIdentity {
        /// Which field of the configuration is set.
        given: &'static str,
        /// Which it needs.
        missing: &'static str,
    },
    /// A file for TLS with a gateway that is reached without TLS, which would ignore it.
    #[error("`{field}` is given, and the gateway {url} is reached without TLS")]
    Ignored {
        /// Which field of the configuration is set.
        field: &'static str,
        /// The gateway's URL.
        url: String,
    },
    /// A certificate or key cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A proxy variable of the environment cannot be used.
    #[error("the proxy in the environment cannot be used: {0}")]
    Proxy(#[from] InvalidProxy),
}

impl Config {
    /// Plain access to these gateways.
    pub fn new<S: Into<String>>(gateways: impl IntoIterator<Item = S>) -> Self {
        Self {
            gateways: gateways.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn endpoints(&self) -> Result<Vec<Endpoint>, ConfigError> {
        self.check_pair()?;
        let proxy = ProxyRules::from_env()?.loopback_direct();
        let mut tls = None;
        let mut endpoints = Vec::with_capacity(self.gateways.len());
        for url in &self.gateways {
            let endpoint = Endpoint::parse(url)?;
            let endpoint = endpoint.with_proxy(proxy.clone());
            endpoints.push(if endpoint.is_tls() {
                endpoint.with_tls(self.tls(&mut tls)?)
            } else {
                self.check_unused(&endpoint)?;
                endpoint
            });
        }
        if endpoints.is_empty() {
            return Err(ConfigError::NoGateway);
        }
        Ok(endpoints)
    }

    fn check_pair(&self) -> Result<(), ConfigError> {
        let (given, missing) = match (&self.cert, &self.key) {
            (Some(_), None) => ("cert", "key"),
            (None, Some(_)) => ("key", "cert"),
            (Some(_), Some(_)) | (None, None) => return Ok(()),
        };
        Err(ConfigError::HalfIdentity { given, missing })
    }

    /// Whoever names a certificate means TLS.
    fn check_unused(&self, plain: &Endpoint) -> Result<(), ConfigError> {
        let files = [("ca", &self.ca), ("cert", &self.cert), ("key", &self.key)];
        match files.into_iter().find(|(_, file)| file.is_some()) {
            None => Ok(()),
            Some((field, _)) => Err(ConfigError::Ignored {
                field,
                url: plain.url(),
            }),
        }
    }

    fn tls(&self, made: &mut Option<Arc<ClientTls>>) -> Result<Arc<ClientTls>, ConfigError> {
        if let Some(tls) = made {
            return Ok(Arc::clone(tls));
        }
        let (ca, cert, key) = (
            self.ca.as_deref(),
            self.cert.as_deref(),
            self.key.as_deref(),
        );
        let tls = Arc::new(ClientTls::load(ca, cert, key)?);
        *made = Some(Arc::clone(&tls));
        Ok(tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(url: &str, ca: bool, cert: bool, key: bool) -> Config {
        let file = |is_set: bool, name: &str| is_set.then(|| PathBuf::from(name));
        Config {
            ca: file(ca, "ca.crt"),
            cert: file(cert, "me.crt"),
            key: file(key, "me.key"),
            ..Config::new([url])
        }
    }

    #[test]
    fn files_that_would_be_ignored_are_refused() {
        for (config, expected) in [
            (config("http://a:1", true, false, false), "ca"),
            (config("http://a:1", false, true, true), "cert"),
        ] {
            let error = config.endpoints().unwrap_err();
            let ConfigError::Ignored { field, url } = error else {
                panic!("{error}");
            };
            assert_eq!((field, url.as_str()), (expected, "http://a:1"));
        }
        assert!(
            config("http://a:1", false, false, false)
                .endpoints()
                .is_ok()
        );
    }

    #[test]
    fn a_certificate_and_its_key_belong_together_whatever_the_gateway() {
        for url in ["http://a:1", "https://a:1"] {
            for (cert, key, expected) in [(true, false, "key"), (false, true, "cert")] {
                let error = config(url, false, cert, key).endpoints().unwrap_err();
                let ConfigError::HalfIdentity { missing, .. } = error else {
                    panic!("{error}");
                };
                assert_eq!(missing, expected);
            }
        }
    }
}
