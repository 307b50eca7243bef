//! One configuration out of what was given and what the file holds.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use tidegate_daemon::picks::{ConfigError, Settings};
use tidegate_daemon::{Dur, Size};
use tidegate_lifecycle::id::SandboxName;
use tidegate_lifecycle::redial::Bounds;
use tidegate_transport::{Proxy, ProxyRules};

use super::{Config, Given};
use crate::Allowlist;

/// The smallest and the largest window of one stream.
const STREAM_WINDOW: std::ops::RangeInclusive<u64> = 64 << 10..=16 << 20;

/// Takes one key out of its layers.
macro_rules! pick {
    ($layers:ident.$key:ident, $default:expr) => {
        $layers.from.pick(
            stringify!($key),
            $layers.given.$key.take(),
            $layers.file.$key.take(),
            $default,
        )
    };
    ($layers:ident.$key:ident) => {
        $layers.from.pick_optional(
            stringify!($key),
            $layers.given.$key.take(),
            $layers.file.$key.take(),
        )
    };
    ($layers:ident.[$key:ident]) => {
        $layers.from.pick_list(
            stringify!($key),
            std::mem::take(&mut $layers.given.$key),
            std::mem::take(&mut $layers.file.$key),
        )
    };
}

/// The same for a path, which is shown as text.
macro_rules! pick_path {
    ($layers:ident.$key:ident) => {
        $layers.path(stringify!($key), |given| &mut given.$key)
    };
}

/// What was said, in order of precedence.
pub(super) struct Layers<'s, 'm> {
    pub(super) given: Given,
    pub(super) file: Given,
    pub(super) from: &'s mut Settings<'m>,
}

impl Layers<'_, '_> {
    pub(super) fn merge(mut self) -> Result<Config, ConfigError> {
        let mut config = self.home()?;
        self.files(&mut config);
        config.allow = Allowlist::new(pick!(self.[allow_target]));
        config.proxy = proxy(pick!(self.proxy))?;
        config.admin = pick!(self.admin);
        self.times(&mut config)?;
        self.limits(&mut config)?;
        Ok(config)
    }

    fn home(&mut self) -> Result<Config, ConfigError> {
        let gateways = pick!(self.[gateway]);
        if gateways.is_empty() {
            return Err(ConfigError::value("gateway", "say which gateway to dial"));
        }
        let sandbox = pick!(self.sandbox)
            .ok_or_else(|| ConfigError::value("sandbox", "say which sandbox this is"))?;
        let sandbox =
            SandboxName::parse(&sandbox).map_err(|error| ConfigError::value("sandbox", error))?;
        let mut config = Config::new("", sandbox);
        config.gateways = gateways;
        Ok(config)
    }

    fn files(&mut self, config: &mut Config) {
        config.ca = pick_path!(self.ca);
        config.cert = pick_path!(self.cert);
        config.key = pick_path!(self.key);
        config.token_file = pick_path!(self.token_file);
        config.ssh_socket = pick_path!(self.ssh_socket);
    }

    fn times(&mut self, config: &mut Config) -> Result<(), ConfigError> {
        config.dial_timeout = pick!(self.dial_timeout, Dur(config.dial_timeout)).0;
        config.stop_grace = pick!(self.stop_grace, Dur(config.stop_grace)).0;
        let Bounds { min, max } = config.redial;
        config.redial = Bounds {
            min: pick!(self.redial_min, Dur(min)).0,
            max: pick!(self.redial_max, Dur(max)).0,
        };
        if config.redial.min.is_zero() || config.redial.min > config.redial.max {
            let message = "use a time above 0 that is not above redial_max";
            return Err(ConfigError::value("redial_min", message));
        }
        let keepalive = pick!(self.stream_keepalive).map(|every| every.0);
        config.stream_keepalive = keepalive.filter(|every| *every > Duration::ZERO);
        config.time_scale = pick!(self.time_scale, 1.0);
        if !(config.time_scale.is_finite() && config.time_scale > 0.0) {
            return Err(ConfigError::value("time_scale", "use a number above 0"));
        }
        Ok(())
    }

    fn limits(&mut self, config: &mut Config) -> Result<(), ConfigError> {
        let threads = NonZeroUsize::new(config.threads).unwrap_or(NonZeroUsize::MIN);
        config.threads = pick!(self.threads, threads).get();
        config.max_streams = pick!(self.max_streams, config.max_streams);
        let buffered = pick!(self.max_buffered, Size(config.max_buffered as u64));
        config.max_buffered = usize::try_from(buffered.0)
            .map_err(|_| ConfigError::value("max_buffered", "more than there can be"))?;
        let window = pick!(self.stream_window, Size(config.stream_window.into())).0;
        config.stream_window = u32::try_from(window)
            .ok()
            .filter(|_| STREAM_WINDOW.contains(&window))
            .ok_or_else(|| ConfigError::value("stream_window", "use 64KiB to 16MiB"))?;
        Ok(())
    }

    fn path(
        &mut self,
        key: &'static str,
        field: fn(&mut Given) -> &mut Option<PathBuf>,
    ) -> Option<PathBuf> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let given = field(&mut self.given).take();
        let file = field(&mut self.file).take();
        let picked = given.clone().or_else(|| file.clone());
        self.from
            .pick_optional(key, given.map(text), file.map(text));
        picked
    }
}

fn proxy(url: Option<String>) -> Result<ProxyRules, ConfigError> {
    let rules = match url {
        Some(url) => Proxy::parse(&url).map(ProxyRules::explicit),
        None => ProxyRules::from_env(),
    };
    rules.map_err(|error| ConfigError::value("proxy", error))
}
