//! Which addresses the supervisor connects to.

use std::fmt;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use ipnet::IpNet;

/// A range of addresses with a port, a range of ports, or all of them: `10.0.0.0/8:5432`,
/// `[fd00::/8]:8000-8099`, `192.0.2.7:*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowRule {
    net: IpNet,
    ports: RangeInclusive<u16>,
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a target to allow: use CIDR:PORT, where PORT is a number, FROM-TO or *, and an \
     IPv6 range stands in brackets"
)]
pub struct AllowRuleError(String);

impl FromStr for AllowRule {
    type Err = AllowRuleError;

    fn from_str(text: &str) -> Result<Self, AllowRuleError> {
        let parsed = text.trim().rsplit_once(':').and_then(|(net, ports)| {
            Some(Self {
                net: range(net)?,
                ports: port_range(ports)?,
            })
        });
        parsed.ok_or_else(|| AllowRuleError(text.chars().take(64).collect()))
    }
}

fn range(text: &str) -> Option<IpNet> {
    let bare = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let bare = bare.unwrap_or(text);
    let address = || {
        bare.parse()
            .ok()
            .map(|ip: std::net::IpAddr| IpNet::from(ip))
    };
    bare.parse().ok().or_else(address)
}

fn port_range(text: &str) -> Option<RangeInclusive<u16>> {
    if text == "*" {
        return Some(1..=u16::MAX);
    }
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let ports = from.parse().ok()?..=to.parse().ok()?;
    (*ports.start() > 0 && !ports.is_empty()).then_some(ports)
}

impl fmt::Display for AllowRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.net {
            IpNet::V4(net) => write!(f, "{net}:")?,
            IpNet::V6(net) => write!(f, "[{net}]:")?,
        }
        match (*self.ports.start(), *self.ports.end()) {
            (1, u16::MAX) => f.write_str("*"),
            (from, to) if from == to => from.fmt(f),
            (from, to) => write!(f, "{from}-{to}"),
        }
    }
}

/// The loopback, and what was allowed beyond it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allowlist(Vec<AllowRule>);

impl Allowlist {
    /// Allows the loopback and `rules`.
    pub const fn new(rules: Vec<AllowRule>) -> Self {
        Self(rules)
    }

    /// Whether a connection to `address` may be tried. An IPv4 address in IPv6 clothes is judged as
    /// what it is; the unspecified address, which the kernel takes for this machine, is none.
    pub fn permits(&self, address: SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        let allowed =
            |rule: &AllowRule| rule.net.contains(&ip) && rule.ports.contains(&address.port());
        !ip.is_unspecified() && (ip.is_loopback() || self.0.iter().any(allowed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rules: &[&str], address: &str, permitted: bool) {
        let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        let address = address.parse().unwrap();
        assert_eq!(
            Allowlist::new(rules).permits(address),
            permitted,
            "{address}"
        );
    }

    #[test]
    fn sec_04_without_rules_there_is_the_loopback_and_nothing_else() {
        for good in [
            "127.0.0.1:80",
            "127.8.9.10:80",
            "[::1]:80",
            "[::ffff:127.0.0.1]:80",
        ] {
            check(&[], good, true);
        }
        for bad in [
            "169.254.169.254:80",
            "10.0.0.1:80",
            "0.0.0.0:80",
            "[::]:80",
            "[::ffff:169.254.169.254]:80",
            "[::ffff:0.0.0.0]:80",
            "[fe80::1]:80",
            "[64:ff9b::7f00:1]:80",
        ] {
            check(&[], bad, false);
        }
    }

    #[test]
    fn a_rule_allows_its_range_and_its_ports() {
        check(&["10.0.0.0/8:5432"], "10.1.2.3:5432", true);
        check(&["10.0.0.0/8:5432"], "[::ffff:10.1.2.3]:5432", true);
        check(&["10.0.0.0/8:5432"], "10.1.2.3:5433", false);
        check(&["10.0.0.0/8:5432"], "11.1.2.3:5432", false);
        check(&["192.0.2.7:*"], "192.0.2.7:1", true);
        check(&["192.0.2.7:*"], "192.0.2.8:1", false);
        check(&["[fd00::/8]:8000-8099"], "[fd12::1]:8099", true);
        check(&["fd00::/8:8000-8099"], "[fd12::1]:8100", false);
        check(&["0.0.0.0/0:*", "[::/0]:*"], "0.0.0.0:80", false);
    }

    #[test]
    fn rules_are_read_and_written() {
        for text in ["10.0.0.0/8:5432", "192.0.2.7/32:*", "[fd00::/8]:8000-8099"] {
            assert_eq!(text.parse::<AllowRule>().unwrap().to_string(), text);
        }
        for bad in [
            "",
            "10.0.0.0/8",
            "10.0.0.0/33:1",
            "example.com:80",
            "10.0.0.1:0",
            "10.0.0.1:9-8",
        ] {
            assert!(bad.parse::<AllowRule>().is_err(), "{bad}");
        }
    }
}
