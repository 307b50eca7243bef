//! What an operator can set: one table of keys, each a flag, an environment variable, a line of the
//! file and a default.

mod args;
mod error;
mod layers;
mod protection;
mod times;
mod value;

pub use args::command;
pub use error::ConfigError;
pub use layers::{Layers, Source};
pub use protection::Protection;
pub use tidegate_daemon::Size;
pub use times::Times;
pub use value::{Address, GatewayName, Remedy, Threads, TimeScale, UnknownSandboxes};

use std::path::PathBuf;
use std::time::Duration;

use tidegate_lifecycle::id::SandboxName;

use self::value::Value;

/// A key, as the command line and the documentation show it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in the file; with dashes it is the flag, in capitals the variable.
    pub name: &'static str,
    /// The form of its value.
    pub kind: &'static str,
    /// Its default, in that form.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// Writes the table down once: as a struct, as a list of [`Key`]s, and as the code between them.
macro_rules! settings {
    ($(#[doc = $help:literal] $name:ident: $kind:ty = $default:literal,)+) => {
        /// A gateway's configuration. Every time in it is as it was set: [`Config::times`] applies
        /// the scale.
        #[derive(Clone, Debug)]
        pub struct Config {
            $(#[doc = $help] pub $name: $kind,)+
        }

        impl Config {
            /// Every key, in the order of the documentation.
            pub const KEYS: &'static [Key] = &[
                $(Key {
                    name: stringify!($name),
                    kind: <$kind as Value>::KIND,
                    default: $default,
                    help: $help,
                },)+
            ];

            /// Reads what the layers say.
            ///
            /// # Errors
            ///
            /// [`ConfigError::Value`] names the key, what it was set to and what it takes.
            pub fn read(layers: &Layers) -> Result<Self, ConfigError> {
                Ok(Self { $($name: layers.read(stringify!($name), $default)?,)+ })
            }

            fn shown(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($name), self.$name.show()),)+]
            }
        }
    };
}

settings! {
    /// Where clients and supervisors connect. Port 0 takes a free one, which is logged.
    listen: Address = "127.0.0.1:7070",
    /// Where health and metrics are served over plain HTTP, to anyone who asks.
    admin: Option<Address> = "off",
    /// The server's certificate with its chain (PEM). Read again when it changes.
    tls_cert: Option<PathBuf> = "off",
    /// The key of the certificate (PEM).
    tls_key: Option<PathBuf> = "off",
    /// The authority that every caller's certificate must come from (PEM).
    client_ca: Option<PathBuf> = "off",
    /// Serves without TLS, or without asking for certificates. Binds the loopback only.
    insecure_dev: bool = "false",
    /// How this gateway is called in tables and on the path of an error; auto = the host's name.
    gateway_id: GatewayName = "auto",
    /// Threads that move bytes; auto = one for each core.
    threads: Threads = "auto",
    /// Names that are known before their supervisor has ever called, separated by commas.
    sandboxes: Vec<SandboxName> = "",
    /// What to do about other names: refuse at once, or wait for a supervisor as for known ones.
    unknown_sandboxes: UnknownSandboxes = "refuse",
    /// How long a name is known after its last session has ended.
    sandbox_retention: Duration = "168h",
    /// How long after the start every valid name counts as known, since this process forgot them.
    restart_grace: Duration = "60s",
    /// How long the first message of a call may take: then INIT_TIMEOUT.
    init_timeout: Duration = "10s",
    /// How long an open waits for the session of a known sandbox: then NO_SESSION.
    session_wait: Duration = "15s",
    /// From asking a supervisor for a relay to its answer, 2s more than it may take to connect.
    relay_open_timeout: Duration = "12s",
    /// Rhythm of heartbeats on a session, both ways; three silent ones end it.
    heartbeat_interval: Duration = "15s",
    /// Rhythm of HTTP/2 PING, which notices connections that are gone.
    ping_interval: Duration = "20s",
    /// How long nothing may arrive after a PING.
    ping_timeout: Duration = "10s",
    /// Ends a stream on which no byte moves for that long: IDLE_TIMEOUT.
    idle_timeout: Option<Duration> = "off",
    /// Ends a stream that is silent for that long after one side has finished: HALF_CLOSE_IDLE.
    half_close_idle: Option<Duration> = "off",
    /// Ends a stream whose reader takes nothing for that long: WRITE_STALLED.
    write_stall_timeout: Option<Duration> = "off",
    /// How long a client without half-close may be silent after its target has ended.
    legacy_half_close_grace: Duration = "500ms",
    /// How often an empty frame is sent into silence, for balancers that cut silent streams.
    stream_keepalive: Option<Duration> = "off",
    /// How long a token of CreateSshSession is good for.
    ssh_session_ttl: Duration = "24h",
    /// Opens of one sandbox that may wait for its supervisor: then LIMIT_PENDING.
    max_pending_per_sandbox: usize = "1024",
    /// Streams that may be open at once: then LIMIT_STREAMS.
    max_streams: usize = "100000",
    /// Streams of one sandbox that may be open at once: then LIMIT_STREAMS.
    max_streams_per_sandbox: usize = "20000",
    /// Supervisors that may be connected at once: then LIMIT_SESSIONS.
    max_sessions: usize = "20000",
    /// Payload that may wait for slow readers in this process: then LIMIT_MEMORY.
    max_buffered: Size = "256MiB",
    /// Bytes that may be on their way in one direction of one stream, 64KiB to 16MiB.
    stream_window: Size = "1MiB",
    /// Divides every time above. For tests.
    time_scale: TimeScale = "1",
}

impl Default for Config {
    fn default() -> Self {
        Self::read(&Layers::default()).expect("a test reads every default")
    }
}

impl Config {
    /// Writes the whole configuration as TOML, and behind each value where it came from.
    pub fn print(&self, layers: &Layers) -> String {
        let lines = self.shown().into_iter().map(|(name, value)| {
            format!(
                "{:<58} # {}\n",
                format!("{name} = {value}"),
                layers.source(name)
            )
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests;
