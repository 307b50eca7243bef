//! Where a server is, and how to reach it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use http::uri::{Authority, Scheme};

use super::connection::{Connection, Origin};
use super::dial::{self, ConnectError};
use crate::proxy::is_loopback;
use crate::{ClientTls, ProxyRules, Settings};

/// A server's URL with everything that connecting to it needs.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub(super) origin: Arc<Origin>,
    pub(super) tls: Option<Arc<ClientTls>>,
    pub(super) proxy: ProxyRules,
    pub(super) settings: Settings,
    pub(super) connect_timeout: Duration,
    /// The address to connect to, whatever the host's name says now.
    pub(super) address: Option<SocketAddr>,
}

/// Why a text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// It is not a URL with a host.
    #[error("`{0}` is not a URL like https://HOST:PORT")]
    NotAUrl(String),
    /// It is a URL of another kind than `http://` and `https://`.
    #[error("`{0}` has to begin with http:// or https://")]
    Scheme(String),
    /// It names more than a server.
    #[error("`{0}` has a user or a path; only https://HOST:PORT is understood")]
    TooMuch(String),
}

impl Endpoint {
    /// Parses `http://HOST[:PORT]` (HTTP/2 in plaintext) or `https://HOST[:PORT]` (TLS, by default
    /// with the system's certificate authorities). No proxy; at most 10 s to connect.
    ///
    /// # Errors
    ///
    /// [`EndpointError`] says what is wrong with `url`.
    pub fn parse(url: &str) -> Result<Self, EndpointError> {
        let shown = || without_user(url);
        let uri: Uri = url.parse().map_err(|_| EndpointError::NotAUrl(shown()))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(EndpointError::NotAUrl(shown()));
        };
        if scheme != Scheme::HTTP && scheme != Scheme::HTTPS {
            return Err(EndpointError::Scheme(shown()));
        }
        let has_path = parts.path_and_query.is_some_and(|path| path != "/");
        if has_path || authority.as_str().contains('@') {
            return Err(EndpointError::TooMuch(shown()));
        }
        if authority.host().is_empty() {
            return Err(EndpointError::NotAUrl(shown()));
        }
        Ok(Self {
            origin: Arc::new(Origin { scheme, authority }),
            tls: None,
            proxy: ProxyRules::none(),
            settings: Settings::default(),
            connect_timeout: Duration::from_secs(10),
            address: None,
        })
    }

    /// Uses `tls` for `https://`.
    #[must_use]
    pub fn with_tls(mut self, tls: Arc<ClientTls>) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Connects through a proxy where `proxy` says so.
    #[must_use]
    pub fn with_proxy(mut self, proxy: ProxyRules) -> Self {
        self.proxy = proxy;
        self
    }

    /// Uses `settings` for its connections.
    #[must_use]
    pub fn with_settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Lets connecting take `timeout`: resolving, every address, proxy, TLS and HTTP/2 together.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Connects to `address` and to no other of the host's. A proxy, which looks names up by itself,
    /// does not hear of it.
    #[must_use]
    pub const fn with_address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Looks up which addresses the host's name stands for. None where there is nothing to look up: a
    /// host that is an address, or one that a proxy looks up.
    ///
    /// # Errors
    ///
    /// What the resolver says.
    pub async fn addresses(&self) -> std::io::Result<Vec<SocketAddr>> {
        let (host, port) = (self.host(), self.port());
        let proxied = self.proxy.choose(self.is_tls(), host, port).is_some();
        if proxied || host.parse::<IpAddr>().is_ok() {
            return Ok(Vec::new());
        }
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }

    /// Connects, trying the host's addresses in turn, until the server has said what it allows.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] says at which step it failed.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what was begun is closed.
    pub async fn connect(&self) -> Result<Connection, ConnectError> {
        dial::connect(self).await
    }

    /// Tells whether connections are encrypted.
    pub fn is_tls(&self) -> bool {
        self.origin.scheme == Scheme::HTTPS
    }

    /// Tells whether nothing on the way to it leaves this machine, as far as its name and the proxy
    /// say.
    pub fn is_local(&self) -> bool {
        let proxy = self.proxy.choose(self.is_tls(), self.host(), self.port());
        proxy.is_none() && is_loopback(self.host())
    }

    /// Tells the host, without brackets if it is an IPv6 address.
    pub fn host(&self) -> &str {
        self.authority()
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
    }

    /// Tells the port, or the scheme's own.
    pub fn port(&self) -> u16 {
        let default = if self.is_tls() { 443 } else { 80 };
        self.authority().port_u16().unwrap_or(default)
    }

    /// Tells the URL.
    pub fn url(&self) -> String {
        format!("{}://{}", self.origin.scheme, self.origin.authority)
    }

    fn authority(&self) -> &Authority {
        &self.origin.authority
    }
}

/// The URL as an error may show it: a user's name comes with a password now and then.
fn without_user(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rfind('@') {
        Some(at) => format!("{scheme}://…{}", &rest[at..]),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Proxy;

    #[track_caller]
    fn check(url: &str, host: &str, port: u16, tls: bool) {
        let endpoint = Endpoint::parse(url).unwrap();
        assert_eq!(
            (endpoint.host(), endpoint.port(), endpoint.is_tls()),
            (host, port, tls)
        );
    }

    #[test]
    fn urls() {
        check("http://localhost:7070", "localhost", 7070, false);
        check("https://gate.example.org/", "gate.example.org", 443, true);
        check("http://[::1]:81", "::1", 81, false);
        check("http://10.0.0.1", "10.0.0.1", 80, false);
    }

    #[test]
    fn what_is_no_url() {
        let error = |url: &str| Endpoint::parse(url).unwrap_err();
        assert!(matches!(error("localhost:7070"), EndpointError::NotAUrl(_)));
        assert!(matches!(error("/path"), EndpointError::NotAUrl(_)));
        assert!(matches!(error("ftp://host"), EndpointError::Scheme(_)));
        assert!(matches!(
            error("http://host/path"),
            EndpointError::TooMuch(_)
        ));
        assert!(matches!(error("http://me@host"), EndpointError::TooMuch(_)));
        for url in [
            "https://me:hunter2@host:1",
            "ftp://me:hunter2@host",
            "http://me:hunter2@ho st",
        ] {
            let sentence = error(url).to_string();
            assert!(
                !sentence.contains("hunter2") && sentence.contains("@ho"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn the_loopback_is_local_unless_a_proxy_stands_between() {
        let at = |url| Endpoint::parse(url).unwrap();
        for local in ["http://127.0.0.1:1", "https://[::1]:1", "http://localhost"] {
            assert!(at(local).is_local(), "{local}");
        }
        for far in ["http://a:1", "http://10.0.0.1:1", "http://localhost.a"] {
            assert!(!at(far).is_local(), "{far}");
        }
        let proxy = ProxyRules::explicit(Proxy::parse("http://p:1").unwrap());
        assert!(!at("http://127.0.0.1:1").with_proxy(proxy).is_local());
    }
}
