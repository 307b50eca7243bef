//! What an operator can set: one table of keys, each a flag, an environment variable, a line of the
//! file and a default.

mod forms;
mod peering;
mod protection;
mod times;

pub use forms::{GatewayName, UnknownSandboxes};
pub use peering::MappedName;
pub(crate) use peering::Peering;
pub use protection::Protection;
pub use tidegate_daemon::settings::{Address, Threads, TimeScale};
pub use tidegate_daemon::{ConfigError, Size};
pub use times::Times;

use std::path::PathBuf;
use std::time::Duration;

use tidegate_daemon::settings;
use tidegate_daemon::settings::rule::{positive, stream_window};
use tidegate_daemon::settings::{Layers, Program};
use tidegate_lifecycle::id::SandboxName;

/// The program that reads it.
pub const PROGRAM: Program = Program {
    name: "tidegate-gateway",
    about: "Accepts clients and supervisors and carries streams between them",
    examples: concat!(
        "  tidegate-gateway --listen 127.0.0.1:7070 --insecure-dev\n",
        "  tidegate-gateway --config /etc/tidegate/gateway.toml --print-config",
    ),
    keys: Config::KEYS,
};

settings! {
    /// A gateway's configuration. Every time in it is as it was set: [`Config::times`] applies
    /// the scale.
    pub struct Config {
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
        /// Where other gateways reach this one; without it they cannot reach its sandboxes.
        peer_url: Option<String> = "off",
        /// The authority that other gateways' certificates must come from (PEM); off = `client_ca`.
        peer_ca: Option<PathBuf> = "off",
        /// Names in certificates of other gateways that are not spiffe://tidegate/gateway/ID, with commas.
        peer_names: Vec<MappedName> = "",
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
        init_timeout: Duration = "10s" where positive,
        /// How long an open waits for the session of a known sandbox: then NO_SESSION.
        session_wait: Duration = "15s",
        /// From asking a supervisor for a relay to its answer, 2s more than it may take to connect.
        relay_open_timeout: Duration = "12s" where positive,
        /// Rhythm of heartbeats on a session, both ways; three silent ones end it.
        heartbeat_interval: Duration = "15s" where positive,
        /// Rhythm of HTTP/2 PING, which notices connections that are gone.
        ping_interval: Duration = "20s" where positive,
        /// How long nothing may arrive after a PING.
        ping_timeout: Duration = "10s" where positive,
        /// Ends a stream on which no byte moves for that long: IDLE_TIMEOUT.
        idle_timeout: Option<Duration> = "off" where positive,
        /// Ends a stream that is silent for that long after one side has finished: HALF_CLOSE_IDLE.
        half_close_idle: Option<Duration> = "off" where positive,
        /// Ends a stream whose reader takes nothing for that long: WRITE_STALLED.
        write_stall_timeout: Option<Duration> = "off" where positive,
        /// How long a client without half-close may be silent after its target has ended.
        legacy_half_close_grace: Duration = "500ms",
        /// How often an empty frame is sent into silence, for balancers that cut silent streams.
        stream_keepalive: Option<Duration> = "off" where positive,
        /// How long a token of CreateSshSession is good for.
        ssh_session_ttl: Duration = "24h",
        /// Opens of one sandbox that may wait for its supervisor: then LIMIT_PENDING.
        max_pending_per_sandbox: usize = "1024",
        /// Streams that may be open at once: then LIMIT_STREAMS.
        max_streams: usize = "100000",
        /// Streams of one sandbox that may be open at once: then LIMIT_STREAMS.
        max_streams_per_sandbox: usize = "20000",
        /// Commands that may run at once: then LIMIT_EXECS.
        max_execs: usize = "20000",
        /// Commands of one sandbox that may run at once: then LIMIT_EXECS.
        max_execs_per_sandbox: usize = "256",
        /// Supervisors that may be connected at once: then LIMIT_SESSIONS.
        max_sessions: usize = "20000",
        /// Payload that may wait for slow readers in this process: then LIMIT_MEMORY.
        max_buffered: Size = "256MiB",
        /// Bytes that may be on their way in one direction of one stream, 64KiB to 16MiB.
        stream_window: Size = "1MiB" where stream_window,
        /// How long the gateway says that it is not ready before it stops listening, when it is told to
        /// leave: the time that balancers take to notice. Supervisors are asked to move meanwhile.
        drain_announce: Duration = "3s",
        /// How long open streams may take to finish when the gateway is told to leave: then
        /// GATEWAY_DRAINING. With 0s everything ends at once.
        drain_deadline: Duration = "5m",
        /// Divides every time above. For tests.
        time_scale: TimeScale = "1",
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::read(&Layers::default()).expect("a test reads every default")
    }
}

#[cfg(test)]
mod tests;
