//! Which connections go through a proxy.

use std::net::IpAddr;

use ipnet::IpNet;

use super::{InvalidProxy, Proxy};

/// The proxies of a process, and the hosts they are not for.
#[derive(Clone, Debug, Default)]
pub struct ProxyRules {
    https: Option<Proxy>,
    http: Option<Proxy>,
    exceptions: NoProxy,
    loopback_direct: bool,
}

impl ProxyRules {
    /// Connects directly, always.
    pub fn none() -> Self {
        Self::default()
    }

    /// Connects through `proxy`, always: what was said outright has no exceptions.
    pub fn explicit(proxy: Proxy) -> Self {
        Self {
            https: Some(proxy.clone()),
            http: Some(proxy),
            exceptions: NoProxy::default(),
            loopback_direct: false,
        }
    }

    /// Connects directly to this machine's loopback too, whatever the rules say: a proxy elsewhere
    /// would connect to its own.
    #[must_use]
    pub const fn loopback_direct(mut self) -> Self {
        self.loopback_direct = true;
        self
    }

    /// Reads the environment: `HTTPS_PROXY` for `https://`, `HTTP_PROXY` for `http://`, `ALL_PROXY`
    /// for both where those say nothing, and `NO_PROXY` for the exceptions; each in lower case
    /// too, which comes first. An empty value is none.
    ///
    /// # Errors
    ///
    /// [`InvalidProxy`] when a variable names no HTTP proxy.
    pub fn from_env() -> Result<Self, InvalidProxy> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// Reads the same variables from `lookup`.
    ///
    /// # Errors
    ///
    /// [`InvalidProxy`] when a variable names no HTTP proxy.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, InvalidProxy> {
        let variable = |name: &str| {
            let filled = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
            filled(name).or_else(|| filled(&name.to_ascii_uppercase()))
        };
        let proxy = |name: &str| {
            let value = variable(name).or_else(|| variable("all_proxy"));
            value.map(|url| Proxy::parse(url.trim())).transpose()
        };
        let exceptions = NoProxy::parse(&variable("no_proxy").unwrap_or_default());
        Ok(Self {
            https: proxy("https_proxy")?,
            http: proxy("http_proxy")?,
            exceptions,
            loopback_direct: false,
        })
    }

    /// Returns the proxy for a connection to `host`, if it is to take one.
    pub fn choose(&self, tls: bool, host: &str, port: u16) -> Option<&Proxy> {
        let proxy = if tls { &self.https } else { &self.http };
        let direct =
            self.exceptions.covers(host, port) || self.loopback_direct && is_loopback(host);
        proxy.as_ref().filter(|_| !direct)
    }
}

/// Tells whether a host is this machine's loopback by its address, or by the names of RFC 6761 §6.3.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// Hosts that are connected to directly: `NO_PROXY`.
///
/// A list with commas. `*` is every host; `example.org` and `.example.org` are that domain and what
/// is below it; `10.1.2.3` is an address, `10.0.0.0/8` a range of them; a port (`host:443`) narrows
/// an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoProxy(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    hosts: Hosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    All,
    Range(IpNet),
    Domain(String),
}

impl NoProxy {
    /// Parses a list. Whatever is not understood as an address is a name.
    pub fn parse(list: &str) -> Self {
        let entries = list
            .split([',', ' '])
            .map(str::trim)
            .filter(|entry| !entry.is_empty());
        Self(entries.map(Entry::parse).collect())
    }

    /// Tells whether a connection to `host` is direct.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        let host = host.trim_end_matches('.').to_ascii_lowercase();
        self.0.iter().any(|entry| entry.covers(&host, port))
    }
}

impl Entry {
    fn parse(text: &str) -> Self {
        if let Some(range) = range(text) {
            return Self {
                hosts: Hosts::Range(range),
                port: None,
            };
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if port.parse::<u16>().is_ok() => (host, port.parse().ok()),
            _ => (text, None),
        };
        let hosts = match range(host) {
            Some(range) => Hosts::Range(range),
            None if host == "*" => Hosts::All,
            None => {
                let domain = host.trim_start_matches("*.").trim_matches('.');
                Hosts::Domain(domain.to_ascii_lowercase())
            }
        };
        Self { hosts, port }
    }

    fn covers(&self, host: &str, port: u16) -> bool {
        if self.port.is_some_and(|only| only != port) {
            return false;
        }
        match &self.hosts {
            Hosts::All => true,
            Hosts::Range(range) => host
                .parse::<IpAddr>()
                .is_ok_and(|addr| range.contains(&addr)),
            Hosts::Domain(domain) => match host.strip_suffix(domain.as_str()) {
                Some(above) => above.is_empty() || above.ends_with('.'),
                None => false,
            },
        }
    }
}

/// Parses an address, in brackets or not, or a range of addresses.
fn range(text: &str) -> Option<IpNet> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
        .unwrap_or(text);
    bare.parse()
        .ok()
        .or_else(|| bare.parse::<IpAddr>().ok().map(IpNet::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(list: &str, host: &str, covered: bool) {
        assert_eq!(
            NoProxy::parse(list).covers(host, 443),
            covered,
            "{list} and {host}"
        );
    }

    #[test]
    fn names() {
        check("example.org", "example.org", true);
        check("example.org", "gate.example.org", true);
        check(".example.org", "GATE.example.org.", true);
        check("*.example.org", "gate.example.org", true);
        check("example.org", "badexample.org", false);
        check("a, example.org", "example.org", true);
        check("*", "anything", true);
        check("", "anything", false);
    }

    #[test]
    fn addresses() {
        check("127.0.0.1", "127.0.0.1", true);
        check("10.0.0.0/8", "10.200.3.4", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.0/8", "ten.example.org", false);
        check("::1", "::1", true);
        check("[fd00::1]:443", "fd00::1", true);
    }

    #[test]
    fn ports() {
        check("example.org:443", "example.org", true);
        check("example.org:8443", "example.org", false);
        check("10.1.2.3:8443", "10.1.2.3", false);
    }

    fn rules(variables: &[(&str, &str)]) -> ProxyRules {
        let lookup = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        };
        ProxyRules::from_variables(lookup).unwrap()
    }

    #[test]
    fn each_scheme_has_its_variable() {
        let rules = rules(&[("HTTPS_PROXY", "tls:1"), ("NO_PROXY", "near")]);
        let chosen = |tls, host| rules.choose(tls, host, 443).map(Proxy::host);
        assert_eq!(chosen(true, "far"), Some("tls"));
        assert_eq!(chosen(true, "near"), None);
        assert_eq!(chosen(false, "far"), None);
    }

    #[test]
    fn lower_case_comes_first_and_empty_is_none() {
        let rules = rules(&[
            ("https_proxy", "lower"),
            ("HTTPS_PROXY", "upper"),
            ("http_proxy", ""),
        ]);
        assert_eq!(rules.choose(true, "far", 1).map(Proxy::host), Some("lower"));
        assert_eq!(rules.choose(false, "far", 1), None);
    }

    #[test]
    fn all_proxy_fills_in() {
        let rules = rules(&[("ALL_PROXY", "all"), ("HTTPS_PROXY", "tls")]);
        assert_eq!(rules.choose(true, "far", 1).map(Proxy::host), Some("tls"));
        assert_eq!(rules.choose(false, "far", 1).map(Proxy::host), Some("all"));
    }

    #[test]
    fn the_loopback_needs_no_exception_where_that_is_asked_for() {
        let rules = rules(&[("ALL_PROXY", "all")]);
        let direct = rules.clone().loopback_direct();
        for host in ["127.0.0.1", "127.8.8.8", "::1", "LocalHost.", "a.localhost"] {
            assert!(rules.choose(false, host, 1).is_some(), "{host}");
            assert_eq!(direct.choose(false, host, 1), None, "{host}");
        }
        for host in ["10.0.0.1", "localhost.example.org", "0.0.0.0"] {
            assert!(direct.choose(false, host, 1).is_some(), "{host}");
        }
    }

    #[test]
    fn an_explicit_proxy_has_no_exceptions() {
        let rules = ProxyRules::explicit(Proxy::parse("squid:3128").unwrap());
        assert!(rules.choose(false, "127.0.0.1", 1).is_some());
    }
}
