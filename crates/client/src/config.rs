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
        let proxy = ProxyRules::from_env()?;
        let mut tls = None;
        let mut endpoints = Vec::with_capacity(self.gateways.len());
        for url in &self.gateways {
            let endpoint = Endpoint::parse(url)?;
            let endpoint = endpoint.with_proxy(proxy.clone());
            endpoints.push(if endpoint.is_tls() {
                endpoint.with_tls(self.tls(&mut tls)?)
            } else {
                endpoint
            });
        }
        if endpoints.is_empty() {
            return Err(ConfigError::NoGateway);
        }
        Ok(endpoints)
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
