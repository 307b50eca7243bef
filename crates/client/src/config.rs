//! What a client must know to reach a gateway.

use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;
use tidegate_transport::proxy::InvalidProxy;
use tidegate_transport::{Credentials, Endpoint, EndpointError, ProxyRules, TlsError};

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
    /// A certificate or key cannot be used, or would be ignored.
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
        let parsed = self.gateways.iter().map(|url| Endpoint::parse(url));
        let endpoints = parsed.collect::<Result<Vec<_>, _>>()?;
        let credentials = Credentials {
            ca: self.ca.as_deref(),
            cert: self.cert.as_deref(),
            key: self.key.as_deref(),
        };
        let tls = credentials.load(&endpoints)?;
        if endpoints.is_empty() {
            return Err(ConfigError::NoGateway);
        }
        let proxy = ProxyRules::from_env()?.loopback_direct();
        let ready = |endpoint: Endpoint| {
            let endpoint = endpoint.with_proxy(proxy.clone());
            match &tls {
                Some(tls) => endpoint.with_tls(Arc::clone(tls)),
                None => endpoint,
            }
        };
        Ok(endpoints.into_iter().map(ready).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_cannot_be_used_are_refused() {
        let ignored = Config {
            ca: Some("ca.crt".into()),
            ..Config::new(["http://a:1"])
        };
        let half = Config {
            key: Some("me.key".into()),
            ..Config::new(["https://a:1"])
        };
        assert!(matches!(
            ignored.endpoints(),
            Err(ConfigError::Tls(TlsError::Ignored { setting: "ca", .. }))
        ));
        assert!(matches!(
            half.endpoints(),
            Err(ConfigError::Tls(TlsError::HalfIdentity { set: "key", .. }))
        ));
    }

    #[test]
    fn a_client_needs_a_gateway_and_nothing_else() {
        assert!(Config::new(["http://a:1"]).endpoints().is_ok());
        let none = Config::default().endpoints();
        assert!(matches!(none, Err(ConfigError::NoGateway)));
    }
}
