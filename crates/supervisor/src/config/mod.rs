//! What an operator can set: one table of keys, each a flag, an environment variable, a line of the
//! file and a default.

mod credentials;
mod forms;

pub use forms::{Authorities, ExecScope, GatewayProxy, GatewayUrl, Homes, Variable};
pub use tidegate_daemon::settings::{Address, Threads, TimeScale};
pub use tidegate_daemon::{ConfigError, Size};

use std::path::PathBuf;
use std::time::Duration;

use tidegate_daemon::settings;
use tidegate_daemon::settings::rule::{filled, positive, stream_window};
use tidegate_daemon::settings::{Layers, Program};
use tidegate_lifecycle::id::SandboxName;
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::redial::Bounds;
use tidegate_transport::{Ping, Settings as Http2};

use crate::AllowRule;
#[cfg(target_os = "linux")]
use crate::runner::RunnerConfig;

/// The program that reads it.
pub const PROGRAM: Program = Program {
    name: "tidegate-supervisor",
    about: "Dials home from inside a sandbox and connects the streams that people open to their \
            targets",
    examples: concat!(
        "  tidegate-supervisor --gateway http://127.0.0.1:7070 --sandbox local\n",
        "  tidegate-supervisor --gateway https://gw0.example.com --gateway https://gw1.example.com \\\n",
        "      --homes 2 --sandbox build-17\n",
        "  tidegate-supervisor --gateway https://gateway.example.com:7070 --sandbox build-17 \\\n",
        "      --ca gateway-ca.crt --cert supervisor.crt --key supervisor.key\n",
        "  tidegate-supervisor --config /etc/tidegate/supervisor.toml --print-config",
    ),
    keys: Config::KEYS,
};

settings! {
    /// A supervisor's configuration. Every time in it is as it was set: [`Config::scaled`] is what
    /// passes.
    pub struct Config {
        /// A gateway to dial, http:// or https://; others are dialled when it is gone or leaves.
        gateway: Vec<GatewayUrl> where filled,
        /// How many gateways to have sessions with at once: with 2, the loss of one cuts nobody off.
        homes: Homes = "1",
        /// The name that people ask for.
        sandbox: SandboxName,
        /// Authorities of the gateway's certificate (PEM); system = those that the system trusts.
        ca: Authorities = "system",
        /// The certificate to show, with its chain (PEM).
        cert: Option<PathBuf> = "off",
        /// The key of the certificate (PEM).
        key: Option<PathBuf> = "off",
        /// A file with a bearer token, read again at each connect.
        token_file: Option<PathBuf> = "off",
        /// Addresses beyond the loopback that streams may lead to; PORT is a number, FROM-TO or *.
        allow_target: Vec<AllowRule> = "",
        /// The Unix socket behind ssh streams.
        ssh_socket: Option<PathBuf> = "off",
        /// An HTTP proxy to reach the gateway through; environment = HTTPS_PROXY and NO_PROXY say.
        proxy: GatewayProxy = "environment",
        /// Where health and metrics are served over plain HTTP, to anyone who asks.
        admin: Option<Address> = "off",
        /// Threads that move bytes; auto = one for each core. The cores are for what runs in the
        /// sandbox, and a stream that stays on the thread of its session costs least.
        threads: Threads = "1",
        /// How long a target may take to answer: then DIAL_TIMEOUT.
        dial_timeout: Duration = "10s" where positive,
        /// How the descendants of a command are found when it has to end; off = no commands are run.
        exec_scope: ExecScope = "auto",
        /// Commands that may run at once: then LIMIT_EXECS.
        exec_limit: usize = "256",
        /// How long a command that has to end may take after TERM: then KILL.
        kill_grace: Duration = "2s",
        /// The variables of every command, NAME=VALUE or NAME for the value that it has here.
        /// Nothing else of this process's own is inherited.
        base_environment: Vec<Variable> = "HOME,LANG,LC_ALL,LOGNAME,PATH,SHELL,TMPDIR,TZ,USER",
        /// How long open streams may take to finish after SIGTERM: then SUPERVISOR_STOPPED.
        stop_grace: Duration = "10s",
        /// The first wait before another attempt, which grows.
        redial_min: Duration = "500ms" where positive,
        /// The longest wait before another attempt.
        redial_max: Duration = "30s" where positive,
        /// Streams that may be open at once: then LIMIT_STREAMS.
        max_streams: usize = "20000",
        /// Payload that may wait for slow readers in this process: then LIMIT_MEMORY.
        max_buffered: Size = "128MiB",
        /// Bytes of one stream that may be on their way from the gateway, 64KiB to 16MiB.
        stream_window: Size = "1MiB" where stream_window,
        /// How often an empty frame is sent into silence, for balancers that cut silent streams.
        stream_keepalive: Option<Duration> = "off" where positive,
        /// Divides every time above. For tests.
        time_scale: TimeScale = "1",
    }
}

impl Config {
    /// The defaults, for a sandbox and a gateway's URL. No proxy, not even the environment's.
    pub fn new(gateway: impl Into<String>, sandbox: SandboxName) -> Self {
        let said = [
            ("gateway", "http://127.0.0.1"),
            ("sandbox", sandbox.as_str()),
        ];
        let defaults = Self::read(&Layers::said(said)).expect("a test reads every default");
        Self {
            gateway: vec![GatewayUrl(gateway.into())],
            proxy: GatewayProxy::Off,
            ..defaults
        }
    }

    /// The waits between attempts.
    ///
    /// # Errors
    ///
    /// When the shortest is longer than the longest.
    pub(crate) fn redial(&self) -> Result<Bounds, ConfigError> {
        let (min, max) = (self.redial_min, self.redial_max);
        if min > max {
            return Err(ConfigError::conflict(
                "`redial_min` is longer than `redial_max`: the first wait cannot be above the longest",
            ));
        }
        Ok(Bounds { min, max })
    }

    /// What passes when `time` was said.
    pub fn scaled(&self, time: Duration) -> Duration {
        self.time_scale.of(time)
    }

    /// The numbers of an HTTP/2 connection to a gateway.
    pub(crate) fn http2(&self) -> Http2 {
        let Ping { interval, timeout } = Ping::default();
        Http2 {
            stream_window: u32::try_from(self.stream_window.0).unwrap_or(u32::MAX),
            ping: Some(Ping {
                interval: self.scaled(interval),
                timeout: self.scaled(timeout),
            }),
            ..Http2::default()
        }
    }

    /// The variables of every command. Without a PATH it has the usual one.
    #[cfg(target_os = "linux")]
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let usual = RunnerConfig::default().base_environment;
        let path = usual.into_iter().filter(|(name, _)| name == "PATH");
        let set = self.base_environment.iter().filter_map(Variable::resolve);
        path.take(1).chain(set).collect()
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
