//! What leads where: `[[BIND:]LOCAL:][HOST:]REMOTE`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use thiserror::Error;
use tidegate_client::Target;

/// One local port, or a free one, that leads to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spec {
    /// Where to listen, if it says.
    pub(super) bind: Option<Bind>,
    /// On which port; 0 is a free one.
    pub(super) local: u16,
    /// Where it leads.
    pub(super) target: Target,
}

/// A local address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bind {
    /// Both loopbacks.
    Localhost,
    /// One address.
    Address(IpAddr),
}

/// A text that cannot be used, and what to write in its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub(crate) struct SpecError(String);

impl Bind {
    /// What is bound when nobody says anything.
    pub(super) const DEFAULT: Self = Self::Address(IpAddr::V4(Ipv4Addr::LOCALHOST));

    /// The address to bind, and another one with the same port that should be bound with it.
    pub(super) fn addresses(self, port: u16) -> (SocketAddr, Option<SocketAddr>) {
        match self {
            Self::Localhost => (
                (Ipv4Addr::LOCALHOST, port).into(),
                Some((Ipv6Addr::LOCALHOST, port).into()),
            ),
            Self::Address(address) => ((address, port).into(), None),
        }
    }
}

impl FromStr for Bind {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        if text.eq_ignore_ascii_case("localhost") {
            return Ok(Self::Localhost);
        }
        let address = bare.unwrap_or(text).parse();
        address.map(Self::Address).map_err(|_| {
            SpecError(match text {
                "" | "*" => "to bind every address, write 0.0.0.0 or [::]".to_owned(),
                _ => format!(
                    "{text:?} is no address to bind: use an IP address of this machine, \
                     or localhost"
                ),
            })
        })
    }
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let parts = split(text)?;
        let (bind, local, host, remote) = match *parts.as_slice() {
            [remote] => (None, None, None, remote),
            [local, remote] if is_port(local) => (None, Some(local), None, remote),
            [host, remote] => (None, None, Some(host), remote),
            [local, host, remote] if is_port(local) => (None, Some(local), Some(host), remote),
            [bind, local, remote] if is_port(local) => (Some(bind), Some(local), None, remote),
            [_, host, _] => {
                let problem = format!(
                    "{host:?} stands where a local port must: write BIND:LOCAL:HOST:REMOTE, \
                     such as 0.0.0.0:8080:db:5432"
                );
                return Err(SpecError(problem));
            }
            [bind, local, host, remote] => (Some(bind), Some(local), Some(host), remote),
            _ => return Err(too_many()),
        };
        let target = target(host.unwrap_or("localhost"), remote)?;
        let local = match local {
            None => remote,
            Some(local) => local,
        };
        Ok(Self {
            bind: bind.map(str::parse).transpose()?,
            local: local_port(local)?,
            target,
        })
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.local, self.target)
    }
}

/// Reads `[HOST:]PORT`, or `ssh`.
pub(crate) fn parse_target(text: &str) -> Result<Target, SpecError> {
    if text == "ssh" {
        return Ok(Target::Ssh);
    }
    let form = || {
        let form = "write [HOST:]PORT, and an IPv6 address in brackets, such as [fd00::1]:80";
        SpecError(form.to_owned())
    };
    match *split(text).map_err(|_| form())?.as_slice() {
        [port] => target("localhost", port),
        [host, port] => target(host, port),
        _ => Err(form()),
    }
}

/// The parts between colons that stand outside brackets.
fn split(text: &str) -> Result<Vec<&str>, SpecError> {
    let mut parts = Vec::new();
    let (mut start, mut inside) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if !inside && at == start => inside = true,
            ']' if inside => inside = false,
            '[' | ']' => return Err(brackets(text)),
            ':' if !inside => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    let closed = |part: &&str| !part.starts_with('[') || part.ends_with(']');
    if inside || !parts.iter().all(closed) {
        return Err(brackets(text));
    }
    if text.contains("::") && parts.iter().filter(|part| part.is_empty()).count() > 1 {
        return Err(too_many());
    }
    Ok(parts)
}

/// Whether a part can only be meant as a local port.
fn is_port(part: &str) -> bool {
    part.bytes().all(|b| b.is_ascii_digit())
}

fn local_port(text: &str) -> Result<u16, SpecError> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        SpecError(format!(
            "{text:?} is no local port: use 1 to 65535, or 0 for a free one"
        ))
    })
}

fn target(host: &str, port: &str) -> Result<Target, SpecError> {
    let number: u32 = port.parse().map_err(|_| {
        SpecError(if port.is_empty() {
            "the remote port is missing: it is the last number, such as 80 in 8080:80".to_owned()
        } else {
            format!("{port:?} is no remote port: use 1 to 65535")
        })
    })?;
    let inner = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    if let Some(inner) = inner
        && inner.parse::<Ipv6Addr>().is_err()
    {
        return Err(SpecError(format!("{host} is no IPv6 address")));
    }
    if is_port(host) {
        let problem = format!("{host:?} stands where a host must: use a name or an address");
        return Err(SpecError(problem));
    }
    Target::tcp(inner.unwrap_or(host), number).map_err(|error| SpecError(error.to_string()))
}

fn brackets(text: &str) -> SpecError {
    SpecError(format!(
        "the brackets in {text:?} do not enclose an address, as in [::1]:80"
    ))
}

fn too_many() -> SpecError {
    SpecError(
        "it has too many colons: write [[BIND:]LOCAL:][HOST:]REMOTE, and IPv6 addresses in \
         brackets, such as 8080:[fd00::1]:80"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, bind: Option<&str>, local: u16, target: &str) {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(spec.bind, bind.map(|bind| bind.parse().unwrap()), "{text}");
        assert_eq!(
            (spec.local, spec.target.to_string().as_str()),
            (local, target),
            "{text}"
        );
    }

    #[test]
    fn every_part_but_the_last_can_be_left_out() {
        check("80", None, 80, "localhost:80");
        check(":80", None, 0, "localhost:80");
        check("0:80", None, 0, "localhost:80");
        check("8080:80", None, 8080, "localhost:80");
        check("db:5432", None, 5432, "db:5432");
        check("10.0.0.1:80", None, 80, "10.0.0.1:80");
        check("8080:db:5432", None, 8080, "db:5432");
        check(":db:5432", None, 0, "db:5432");
        check("127.0.0.2:8080:80", Some("127.0.0.2"), 8080, "localhost:80");
        check("localhost::80", Some("localhost"), 0, "localhost:80");
        check("0.0.0.0:8080:db:5432", Some("0.0.0.0"), 8080, "db:5432");
        check("127.0.0.1::db:5432", Some("127.0.0.1"), 0, "db:5432");
    }

    #[test]
    fn ipv6_stands_in_brackets() {
        check("[::1]:80", None, 80, "[::1]:80");
        check("8080:[fd00::1]:80", None, 8080, "[fd00::1]:80");
        check("[::1]:8080:80", Some("::1"), 8080, "localhost:80");
        check("[::]:8080:[::1]:80", Some("::"), 8080, "[::1]:80");
    }

    #[test]
    fn what_cannot_be_meant_is_named_with_the_remedy() {
        let check = |text: &str, part: &str| {
            let error = text.parse::<Spec>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        };
        check("", "remote port is missing");
        check(":", "remote port is missing");
        check("8080:", "remote port is missing");
        check("http", "\"http\" is no remote port");
        check("8080:http", "\"http\" is no remote port");
        check("8080:0", "0 is not a port");
        check("65536", "65536 is not a port");
        check("70000:80", "\"70000\" is no local port");
        check("8080:80:80", "\"80\" stands where a host must");
        check("a:b:80", "\"b\" stands where a local port must");
        check("somewhere:8080:80", "\"somewhere\" is no address to bind");
        check("*:8080:80", "write 0.0.0.0");
        check(":8080:db:80", "write 0.0.0.0");
        check("::1:80", "brackets");
        check("8080:fd00::1:80", "brackets");
        check("1:2:3:4:5", "too many colons");
        check("[::1:80", "brackets");
        check("x[::1]:80", "brackets");
        check("[nonsense]:80", "no IPv6 address");
        check("-1", "\"-1\" is no remote port");
        check("8080:a b:80", "not a host");
    }

    #[test]
    fn connect_takes_a_host_and_a_port() {
        let target = |text: &str| parse_target(text).map(|target| target.to_string());
        assert_eq!(target("22").unwrap(), "localhost:22");
        assert_eq!(target("db:5432").unwrap(), "db:5432");
        assert_eq!(target("[::1]:80").unwrap(), "[::1]:80");
        assert_eq!(target("ssh").unwrap(), "ssh");
        for bad in ["", "db", "1:db:2", "0", "::1:80"] {
            assert!(target(bad).is_err(), "{bad}");
        }
        let said = target("a:b:1").unwrap_err().to_string();
        assert!(
            said.contains("[HOST:]PORT") && !said.contains("LOCAL"),
            "{said}"
        );
    }
}
