//! Values that daemons take beyond plain ones.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

use tidegate_lifecycle::id::SandboxName;

use super::{Remedy, Value, quoted};

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

/// How many threads move bytes; `auto` is one for each core.
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

impl TimeScale {
    /// What passes when `time` was said.
    pub fn of(self, time: Duration) -> Duration {
        // Bounded, so that a scale below 1 does not overflow.
        Duration::try_from_secs_f64(time.as_secs_f64() / self.0).unwrap_or(Duration::MAX)
    }
}

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

impl Value for SandboxName {
    const KIND: &'static str = "NAME";

    fn read(text: &str) -> Result<Self, Remedy> {
        Self::parse(text).map_err(|error| Remedy::new(error.to_string()))
    }

    fn show(&self) -> String {
        quoted(self.as_str())
    }
}
