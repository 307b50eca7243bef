//! What the operator has said: on the command line, in the environment, in a file.

mod given;
mod merge;

use std::path::PathBuf;
use std::time::Duration;

use tidegate_daemon::picks::{self, ConfigError, Settings};
use tidegate_lifecycle::id::SandboxName;
use tidegate_lifecycle::limits::{DIAL_TIMEOUT, STOP_GRACE, StreamLimits};
use tidegate_lifecycle::redial::Bounds;
use tidegate_transport::{Ping, ProxyRules, Settings as Http2};

use self::merge::Layers;
use crate::Allowlist;

pub use self::given::{Cli, Given};

/// The whole configuration of a supervisor. Times are those that were said;
/// [`Config::scaled`] is what passes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// URLs of gateways; the first is dialled first.
    pub gateways: Vec<String>,
    /// The sandbox it serves.
    pub sandbox: SandboxName,
    /// Authorities that the gateway's certificate must come from, in place of the system's.
    pub ca: Option<PathBuf>,
    /// The certificate chain to show.
    pub cert: Option<PathBuf>,
    /// Its key.
    pub key: Option<PathBuf>,
    /// A file with a bearer token.
    pub token_file: Option<PathBuf>,
    /// What may be connected to.
    pub allow: Allowlist,
    /// The Unix socket behind `ssh` streams.
    pub ssh_socket: Option<PathBuf>,
    /// How gateways are reached.
    pub proxy: ProxyRules,
    /// Where health and metrics are told, if anywhere.
    pub admin: Option<String>,
    /// Threads that move bytes. One by default: the cores are for what runs in the sandbox, and a
    /// stream that stays on the thread of its session costs least.
    pub threads: usize,
    /// How long a target may take to answer.
    pub dial_timeout: Duration,
    /// How long open streams may take to finish when the supervisor is told to stop.
    pub stop_grace: Duration,
    /// The waits between attempts.
    pub redial: Bounds,
    /// Streams that may be open, or being opened.
    pub max_streams: usize,
    /// Bytes that may be buffered before new streams are refused.
    pub max_buffered: usize,
    /// Bytes that a gateway may send on one stream before they are taken.
    pub stream_window: u32,
    /// How often an empty frame is sent into silence, where the hop agreed on frames.
    pub stream_keepalive: Option<Duration>,
    /// Divides every time, for tests.
    pub time_scale: f64,
}

impl Config {
    /// The defaults, for a sandbox and a gateway's URL. No proxy, not even the environment's.
    pub fn new(gateway: impl Into<String>, sandbox: SandboxName) -> Self {
        Self {
            gateways: vec![gateway.into()],
            sandbox,
            ca: None,
            cert: None,
            key: None,
            token_file: None,
            allow: Allowlist::default(),
            ssh_socket: None,
            proxy: ProxyRules::none(),
            admin: None,
            threads: 1,
            dial_timeout: DIAL_TIMEOUT,
            stop_grace: STOP_GRACE,
            redial: Bounds::default(),
            max_streams: 20_000,
            max_buffered: 128 << 20,
            stream_window: 1 << 20,
            stream_keepalive: None,
            time_scale: 1.0,
        }
    }

    /// Puts together what was given.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names the file, or the key that is missing or cannot be used.
    pub fn load(cli: Cli, settings: &mut Settings<'_>) -> Result<Self, ConfigError> {
        let file = match &cli.config {
            Some(path) => picks::read_file(path)?,
            None => Given::default(),
        };
        let layers = Layers {
            given: cli.given,
            file,
            from: settings,
        };
        layers.merge()
    }

    /// What passes when `time` was said.
    pub fn scaled(&self, time: Duration) -> Duration {
        // Bounded, so that a scale below 1 does not overflow.
        Duration::try_from_secs_f64(time.as_secs_f64() / self.time_scale).unwrap_or(Duration::MAX)
    }

    /// The numbers of an HTTP/2 connection to a gateway.
    pub(crate) fn http2(&self) -> Http2 {
        let Ping { interval, timeout } = Ping::default();
        Http2 {
            stream_window: self.stream_window,
            ping: Some(Ping {
                interval: self.scaled(interval),
                timeout: self.scaled(timeout),
            }),
            ..Http2::default()
        }
    }

    pub(crate) fn stream_limits(&self) -> StreamLimits {
        StreamLimits {
            keepalive: self.stream_keepalive.map(|every| self.scaled(every)),
            ..StreamLimits::default()
        }
    }
}

#[cfg(test)]
mod tests;
