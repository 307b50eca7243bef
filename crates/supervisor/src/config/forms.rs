//! Values that only a supervisor takes.

use std::path::{Path, PathBuf};

use tidegate_daemon::settings::{Remedy, Value, quoted};
use tidegate_daemon::{ConfigError, choice};
use tidegate_lifecycle::session::Hello;
use tidegate_transport::{Endpoint, EndpointError, Proxy, ProxyRules};

use crate::AllowRule;
#[cfg(target_os = "linux")]
use crate::runner::Scope;

choice! {
    /// How the descendants of a command are found when it has to end.
    pub enum ExecScope {
        /// With cgroups where they can be used, else with reapers.
        Auto = "auto",
        /// With a cgroup for each command.
        Cgroup = "cgroup",
        /// With a reaper for each command.
        Reaper = "reaper",
        /// Commands are not run.
        Off = "off",
    }
}

#[cfg(target_os = "linux")]
impl ExecScope {
    /// The same for the runner.
    pub(crate) const fn scope(self) -> Scope {
        match self {
            Self::Auto | Self::Off => Scope::Auto,
            Self::Cgroup => Scope::Cgroup,
            Self::Reaper => Scope::Reaper,
        }
    }
}

/// A variable of every command: `NAME=VALUE`, or `NAME` with the value that it has here.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value; the supervisor's own if unset.
    pub value: Option<String>,
}

impl Variable {
    /// Its name and value, unless it has none here.
    pub(crate) fn resolve(&self) -> Option<(String, String)> {
        let value = self.value.clone();
        let value = value.or_else(|| std::env::var(&self.name).ok());
        value.map(|value| (self.name.clone(), value))
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What it is set to may be a secret.
        f.debug_tuple("Variable").field(&self.name).finish()
    }
}

impl Value for Variable {
    const KIND: &'static str = "NAME[=VALUE]";
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, Remedy> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (text, None),
        };
        let begins = name
            .chars()
            .next()
            .is_some_and(|c| c == '_' || c.is_ascii_alphabetic());
        let goes_on = name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric());
        if !begins || !goes_on {
            return Err(Remedy::new(
                "write NAME=VALUE, or NAME for the value that it has here, with a name of letters, \
                 digits and _",
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            value,
        })
    }

    fn show(&self) -> String {
        let value = self.value.as_ref();
        quoted(&value.map_or_else(|| self.name.clone(), |_| format!("{}=…", self.name)))
    }
}

/// A gateway to dial: `http://HOST:PORT` or `https://HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayUrl(pub String);

impl GatewayUrl {
    /// Where it leads.
    ///
    /// # Errors
    ///
    /// [`EndpointError`] says why it leads nowhere.
    pub fn endpoint(&self) -> Result<Endpoint, EndpointError> {
        Endpoint::parse(&self.0)
    }
}

impl Value for GatewayUrl {
    const KIND: &'static str = "URL";
    // A name and a password may stand before the host, by mistake.
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, Remedy> {
        let url = Self(text.to_owned());
        match url.endpoint() {
            Ok(_) => Ok(url),
            Err(error) => Err(Remedy::new(error.to_string())),
        }
    }

    fn show(&self) -> String {
        quoted(&self.0)
    }
}

/// How many gateways a supervisor has sessions with at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Homes(pub u8);

impl Value for Homes {
    const KIND: &'static str = "N";

    fn read(text: &str) -> Result<Self, Remedy> {
        let homes = text
            .parse()
            .ok()
            .filter(|homes| (1..=Hello::MAX_HOMES).contains(homes));
        homes
            .map(Self)
            .ok_or_else(|| Remedy::new(format!("write a number from 1 to {}", Hello::MAX_HOMES)))
    }

    fn show(&self) -> String {
        self.0.to_string()
    }
}

/// Whom the gateway's certificate must come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Authorities {
    /// The authorities that the system trusts.
    System,
    /// Those of a file.
    File(PathBuf),
}

impl Authorities {
    /// The file, if they are in one.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::System => None,
            Self::File(path) => Some(path),
        }
    }
}

impl Value for Authorities {
    const KIND: &'static str = "FILE";

    fn read(text: &str) -> Result<Self, Remedy> {
        Ok(match text {
            "system" => Self::System,
            path => Self::File(path.into()),
        })
    }

    fn show(&self) -> String {
        match self {
            Self::System => quoted("system"),
            Self::File(path) => path.show(),
        }
    }
}

/// The proxy between here and the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayProxy {
    /// What `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` say.
    Environment,
    /// None, whatever they say.
    Off,
    /// This one, always.
    Through(Proxy),
}

impl GatewayProxy {
    /// Which connections go through which proxy.
    ///
    /// # Errors
    ///
    /// When a variable of the environment names no proxy.
    pub fn rules(&self) -> Result<ProxyRules, ConfigError> {
        match self {
            Self::Environment => ProxyRules::from_env().map_err(|error| {
                ConfigError::conflict(format!(
                    "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY cannot be used: {error}; `proxy` comes \
                     before them, with a URL or off"
                ))
            }),
            Self::Off => Ok(ProxyRules::none()),
            Self::Through(proxy) => Ok(ProxyRules::explicit(proxy.clone())),
        }
    }
}

impl Value for GatewayProxy {
    const KIND: &'static str = "URL";
    const SECRET: bool = true;

    fn read(text: &str) -> Result<Self, Remedy> {
        match text {
            "environment" => Ok(Self::Environment),
            "off" => Ok(Self::Off),
            url => match Proxy::parse(url) {
                Ok(proxy) => Ok(Self::Through(proxy)),
                Err(error) => Err(Remedy::new(error.to_string())),
            },
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Environment => quoted("environment"),
            Self::Off => quoted("off"),
            Self::Through(proxy) => quoted(&format!("http://{proxy}")),
        }
    }
}

impl Value for AllowRule {
    const KIND: &'static str = "CIDR:PORT";

    fn read(text: &str) -> Result<Self, Remedy> {
        let rule = text.parse();
        rule.map_err(|_| {
            Remedy::new(
                "write CIDR:PORT, where PORT is a number, FROM-TO or *, and an IPv6 range stands in \
                 brackets",
            )
        })
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}
