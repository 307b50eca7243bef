//! The forms that values have, read from text and written back.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use tidegate_daemon::{Dur, Size};
use tidegate_lifecycle::id::{GatewayId, SandboxName};

/// What is wrong with a value, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy(String);

impl Remedy {
    fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A form of value.
pub(super) trait Value: Sized {
    /// What stands for it in `--help`.
    const KIND: &'static str;

    fn read(text: &str) -> Result<Self, Remedy>;

    /// The value as TOML.
    fn show(&self) -> String;
}

/// An address to listen on: a host or an IP address, and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(String);

impl Address {
    /// Returns the socket address that it stands for; a name is looked up.
    ///
    /// # Errors
    ///
    /// What the resolver says, or `NotFound` if it knows no address of the name.
    pub fn resolve(&self) -> std::io::Result<SocketAddr> {
        let mut addresses = self.0.to_socket_addrs()?;
        addresses
            .next()
            .ok_or_else(|| std::io::ErrorKind::NotFound.into())
    }
}

impl From<SocketAddr> for Address {
    fn from(addr: SocketAddr) -> Self {
        Self(addr.to_string())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Value for Address {
    const KIND: &'static str = "ADDR";

    fn read(text: &str) -> Result<Self, Remedy> {
        let port = text.rsplit_once(':').filter(|(host, _)| {
            let bare_v6 = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
            !host.is_empty() && !bare_v6
        });
        match port.map(|(_, port)| port.parse::<u16>()) {
            Some(Ok(_)) => Ok(Self(text.to_owned())),
            Some(Err(_)) | None => Err(Remedy::new(
                "write HOST:PORT, an IPv6 address in brackets, as [::1]:7070",
            )),
        }
    }

    fn show(&self) -> String {
        quoted(&self.0)
    }
}

impl Value for Duration {
    const KIND: &'static str = "DUR";

    fn read(text: &str) -> Result<Self, Remedy> {
        let dur = text.parse::<Dur>();
        dur.map(|dur| dur.0)
            .map_err(|_| Remedy::new("write a time, as 1500ms, 2s, 5m or 1h"))
    }

    fn show(&self) -> String {
        quoted(&Dur(*self).to_string())
    }
}

impl Value for Size {
    const KIND: &'static str = "SIZE";

    fn read(text: &str) -> Result<Self, Remedy> {
        text.parse()
            .map_err(|_| Remedy::new("write a size, as 64KiB, 1MiB or 1GiB"))
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Value for usize {
    const KIND: &'static str = "N";

    fn read(text: &str) -> Result<Self, Remedy> {
        text.parse()
            .map_err(|_| Remedy::new("write a whole number"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const KIND: &'static str = "BOOL";

    fn read(text: &str) -> Result<Self, Remedy> {
        match text {
            "true" | "1" | "yes" => Ok(true),
            "false" | "0" | "no" => Ok(false),
            _ => Err(Remedy::new("write true or false")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for PathBuf {
    const KIND: &'static str = "FILE";

    fn read(text: &str) -> Result<Self, Remedy> {
        Ok(text.into())
    }

    fn show(&self) -> String {
        quoted(&self.display().to_string())
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: &'static str = T::KIND;

    fn read(text: &str) -> Result<Self, Remedy> {
        match text {
            "off" => Ok(None),
            text => T::read(text).map(Some),
        }
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| quoted("off"), Value::show)
    }
}

impl Value for Vec<SandboxName> {
    const KIND: &'static str = "NAME,...";

    fn read(text: &str) -> Result<Self, Remedy> {
        let names = text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let names =
            names.map(|name| SandboxName::parse(name).map_err(|e| Remedy::new(e.to_string())));
        names.collect()
    }

    fn show(&self) -> String {
        let names: Vec<_> = self.iter().map(|name| quoted(name.as_str())).collect();
        format!("[{}]", names.join(", "))
    }
}

/// What becomes of an open for a sandbox that nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnknownSandboxes {
    /// It is refused at once.
    Refuse,
    /// It waits for a session as that of a known one does.
    Wait,
}

impl Value for UnknownSandboxes {
    const KIND: &'static str = "refuse|wait";

    fn read(text: &str) -> Result<Self, Remedy> {
        match text {
            "refuse" => Ok(Self::Refuse),
            "wait" => Ok(Self::Wait),
            _ => Err(Remedy::new("write refuse or wait")),
        }
    }

    fn show(&self) -> String {
        quoted(match self {
            Self::Refuse => "refuse",
            Self::Wait => "wait",
        })
    }
}

/// How a gateway is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayName(pub GatewayId);

impl GatewayName {
    const MAX_LEN: usize = 64;

    fn of_host() -> Self {
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        let name: String = host
            .chars()
            .filter(|c| Self::allows(*c))
            .take(Self::MAX_LEN)
            .collect();
        Self(GatewayId::new(if name.is_empty() {
            "gateway".to_owned()
        } else {
            name
        }))
    }

    const fn allows(c: char) -> bool {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
    }
}

impl Value for GatewayName {
    const KIND: &'static str = "NAME";

    fn read(text: &str) -> Result<Self, Remedy> {
        if text == "auto" {
            return Ok(Self::of_host());
        }
        if (1..=Self::MAX_LEN).contains(&text.len()) && text.chars().all(Self::allows) {
            Ok(Self(GatewayId::new(text)))
        } else {
            Err(Remedy::new(
                "write 1 to 64 letters, digits, '-', '_' or '.'",
            ))
        }
    }

    fn show(&self) -> String {
        quoted(self.0.as_str())
    }
}

/// How many threads move bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads(pub usize);

impl Value for Threads {
    const KIND: &'static str = "N";

    fn read(text: &str) -> Result<Self, Remedy> {
        if text == "auto" {
            return Ok(Self(
                std::thread::available_parallelism().map_or(1, usize::from),
            ));
        }
        match text.parse() {
            Ok(count @ 1..=1024) => Ok(Self(count)),
            Ok(_) | Err(_) => Err(Remedy::new("write a number from 1 to 1024, or auto")),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// What every time is divided by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeScale(pub f64);

impl Value for TimeScale {
    const KIND: &'static str = "N";

    fn read(text: &str) -> Result<Self, Remedy> {
        match text.parse() {
            Ok(scale) if (0.001..=1_000_000.0).contains(&scale) => Ok(Self(scale)),
            Ok(_) | Err(_) => Err(Remedy::new(
                "write a number above 0; 10 makes times ten times shorter",
            )),
        }
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// Text as a TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Value + fmt::Debug + PartialEq>(text: &str, value: T, shown: &str) {
        assert_eq!(T::read(text), Ok(value), "{text}");
        assert_eq!(T::read(text).unwrap().show(), shown, "{text}");
    }

    #[test]
    fn times_and_sizes_are_read_in_every_unit_and_shown_in_the_largest() {
        check("1500ms", Duration::from_millis(1500), "\"1500ms\"");
        check("2", Duration::from_secs(2), "\"2s\"");
        check("0.5s", Duration::from_millis(500), "\"500ms\"");
        check("120s", Duration::from_secs(120), "\"2m\"");
        check("168h", Duration::from_secs(604_800), "\"168h\"");
        check("off", None::<Duration>, "\"off\"");
        check("64KiB", Size(65_536), "\"64KiB\"");
        check("1g", Size(1 << 30), "\"1GiB\"");
        check("1000", Size(1000), "\"1000\"");
    }

    #[test]
    fn what_has_no_such_form_is_refused_with_a_remedy() {
        for text in ["", "s", "-1s", "1 day", "inf"] {
            assert!(Duration::read(text).is_err(), "{text}");
        }
        for text in ["", "MiB", "-1", "1.5MiB", "99999999999GiB"] {
            assert!(Size::read(text).is_err(), "{text}");
        }
        for text in ["", ":80", "localhost", "::1:80", "localhost:65536", "[::1]"] {
            assert!(Address::read(text).is_err(), "{text}");
        }
        assert!(Address::read("[::1]:0").is_ok() && Address::read("localhost:0").is_ok());
        assert!(Vec::<SandboxName>::read("a, b,,-c").is_err());
        assert!(Threads::read("0").is_err() && TimeScale::read("0").is_err());
        assert!(GatewayName::read("gw/0").is_err());
    }
}
