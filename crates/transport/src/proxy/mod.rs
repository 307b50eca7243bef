//! Connecting through an HTTP proxy: which one ([`ProxyRules`]), and the CONNECT that it is asked.

mod rules;
mod tunnel;

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::Uri;

pub use rules::{NoProxy, ProxyRules};
pub use tunnel::ProxyError;

pub(crate) use rules::is_loopback;
pub(crate) use tunnel::tunnel;

/// An HTTP proxy. Shown without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
    authorization: Option<String>,
}

/// A text that names no proxy we can use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a proxy is named as http://[USER:PASSWORD@]HOST:PORT")]
pub struct InvalidProxy;

impl Proxy {
    /// Parses `http://[USER:PASSWORD@]HOST[:PORT]`; `http://` may be left out, the port is 80
    /// then as with it.
    ///
    /// # Errors
    ///
    /// [`InvalidProxy`], which does not repeat the text: it may hold a password.
    pub fn parse(url: &str) -> Result<Self, InvalidProxy> {
        let url = if url.contains("://") {
            url.to_owned()
        } else {
            format!("http://{url}")
        };
        let uri: Uri = url.parse().map_err(|_| InvalidProxy)?;
        let authority = uri.authority().ok_or(InvalidProxy)?;
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        if uri.scheme_str() != Some("http") || host.is_empty() {
            return Err(InvalidProxy);
        }
        let credentials = authority
            .as_str()
            .rsplit_once('@')
            .map(|(user, _)| decode(user));
        let authorization =
            credentials.map(|user| format!("Basic {}", BASE64_STANDARD.encode(user)));
        let port = authority.port_u16().unwrap_or(80);
        Ok(Self {
            host: host.to_owned(),
            port,
            authorization,
        })
    }

    /// Tells the proxy's host.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Tells the proxy's port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Replaces `%XX` by the byte it stands for.
fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match escaped {
            Some((high, low)) => {
                bytes.push(high << 4 | low);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&host_port(&self.host, self.port))
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

/// Writes an address as it stands in a URL.
fn host_port(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let proxy = |text| Proxy::parse(text).map(|proxy| proxy.to_string());
        assert_eq!(proxy("http://squid:3128"), Ok("squid:3128".to_owned()));
        assert_eq!(proxy("squid:3128/"), Ok("squid:3128".to_owned()));
        assert_eq!(proxy("[::1]"), Ok("[::1]:80".to_owned()));
        assert_eq!(proxy("socks5://squid"), Err(InvalidProxy));
        assert_eq!(proxy(""), Err(InvalidProxy));
    }

    #[test]
    fn a_password_is_decoded_and_not_shown() {
        let proxy = Proxy::parse("http://me:p%40ss@squid:3128").unwrap();
        assert_eq!(proxy.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
        assert_eq!(format!("{proxy:?}"), "Proxy(squid:3128)");
    }
}
