//! Every time as it counts, with the scale applied.

use std::time::Duration;

use tidegate_lifecycle::limits::{
    LEGACY_RELAY_OPEN, PEER_CONNECT, PEER_IDLE, PEER_PING, RELAY_OPEN_SLACK, StreamLimits,
};
use tidegate_transport::Ping;

use super::Config;

/// The times of a gateway.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// The first message of a call.
    pub init: Duration,
    /// Waiting for a session.
    pub session_wait: Duration,
    /// From a request for a relay to its claim.
    pub relay_open: Duration,
    /// The same, of a supervisor that is told no limit.
    pub legacy_relay_open: Duration,
    /// What supervisors are told as their limit for connecting to a target.
    pub dial: Duration,
    /// Between heartbeats.
    pub heartbeat: Duration,
    /// HTTP/2 PING.
    pub ping: Ping,
    /// What limits a stream once it is open.
    pub stream: StreamLimits,
    /// The life of a token.
    pub ssh_session: Duration,
    /// How long a name without session is known.
    pub retention: Duration,
    /// How long every valid name is.
    pub grace: Duration,
    /// How long a departure is announced.
    pub drain_announce: Duration,
    /// How long it may take.
    pub drain_deadline: Duration,
    /// Connecting to another gateway.
    pub peer_connect: Duration,
    /// HTTP/2 PING on connections to other gateways.
    pub peer_ping: Ping,
    /// From asking another gateway for a stream to its answer.
    pub peer_answer: Duration,
    /// How long a connection to another gateway is kept that carries nothing.
    pub peer_idle: Duration,
}

impl Config {
    /// Applies the scale to every time.
    pub fn times(&self) -> Times {
        let scaled = |time| self.time_scale.of(time);
        let relay_open = scaled(self.relay_open_timeout);
        let slack = scaled(RELAY_OPEN_SLACK);
        Times {
            init: scaled(self.init_timeout),
            session_wait: scaled(self.session_wait),
            relay_open,
            legacy_relay_open: scaled(LEGACY_RELAY_OPEN).min(relay_open),
            dial: relay_open.saturating_sub(slack).max(relay_open / 2),
            heartbeat: scaled(self.heartbeat_interval),
            ping: Ping {
                interval: scaled(self.ping_interval),
                timeout: scaled(self.ping_timeout),
            },
            stream: StreamLimits {
                idle: self.idle_timeout.map(scaled),
                half_close_idle: self.half_close_idle.map(scaled),
                write_stall: self.write_stall_timeout.map(scaled),
                legacy_half_close_grace: scaled(self.legacy_half_close_grace),
                keepalive: self.stream_keepalive.map(scaled),
            },
            ssh_session: scaled(self.ssh_session_ttl),
            retention: scaled(self.sandbox_retention),
            grace: scaled(self.restart_grace),
            drain_announce: scaled(self.drain_announce),
            drain_deadline: scaled(self.drain_deadline),
            peer_connect: scaled(PEER_CONNECT),
            peer_ping: Ping {
                interval: scaled(PEER_PING).min(scaled(self.ping_interval)),
                timeout: scaled(PEER_PING).min(scaled(self.ping_timeout)),
            },
            peer_answer: relay_open + slack,
            peer_idle: scaled(PEER_IDLE),
        }
    }
}
