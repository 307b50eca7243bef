//! Every timeout and bound of a stream and a session, with its default.
//!
//! The shells read these values from their configuration and pass them in; nothing here reads a clock.

use std::time::Duration;

/// The largest payload of one data frame that we send, and that a peer with `frame-limit-v1` may send.
pub const MAX_FRAME: usize = 64 * 1024;

/// The largest message of a peer without `frame-limit-v1`; its frames are split for the next hop.
pub const MAX_LEGACY_MESSAGE: usize = 1024 * 1024;

/// How long a bare transport failure waits for the typed `RelayClose` that explains it.
pub const CLOSE_REASON_GRACE: Duration = Duration::from_millis(100);

/// How long an end may wait behind data that the peer does not take before the stream is reset.
pub const STATUS_GRACE: Duration = Duration::from_secs(1);

/// How long anything of a stream may outlive its end.
pub const CLEANUP: Duration = Duration::from_secs(5);

/// The limits of one stream. `None` means that silence is valid for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// No byte moves in either direction.
    pub idle: Option<Duration>,
    /// One direction has ended and no byte moves in the other.
    pub half_close_idle: Option<Duration>,
    /// A reader takes nothing although bytes are waiting for it.
    pub write_stall: Option<Duration>,
    /// How long a legacy client may be silent after its target has ended before the RPC ends with OK.
    pub legacy_half_close_grace: Duration,
    /// How often an empty data frame is sent into silence, where the hop agreed on frames.
    pub keepalive: Option<Duration>,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            idle: None,
            half_close_idle: None,
            write_stall: None,
            legacy_half_close_grace: Duration::from_millis(500),
            keepalive: None,
        }
    }
}

/// The default of the first frame after an RPC opens.
pub const INIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The default wait for a session of a known sandbox.
pub const SESSION_WAIT: Duration = Duration::from_secs(15);
/// The default limit of a TCP connection attempt.
pub const DIAL_TIMEOUT: Duration = Duration::from_secs(10);
/// What a gateway adds to the dial limit before it gives a request for a relay up.
pub const RELAY_OPEN_SLACK: Duration = Duration::from_secs(2);
/// How long a legacy supervisor has to answer a request for a relay.
pub const LEGACY_RELAY_OPEN: Duration = Duration::from_secs(10);
/// How long connecting to another gateway may take, before the next home is tried.
pub const PEER_CONNECT: Duration = Duration::from_secs(2);
/// Rhythm of PING between gateways, and how long it may stay unanswered: one that stopped should be
/// noticed before its streams' clients give up.
pub const PEER_PING: Duration = Duration::from_secs(3);
/// How long a connection to another gateway is kept that carries nothing.
pub const PEER_IDLE: Duration = Duration::from_secs(300);
/// The default heartbeat interval, in both directions.
pub const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(15);
/// Silent intervals that end a session which agreed on liveness.
pub const MISSED_HEARTBEATS: u32 = 3;
/// How long a stopped supervisor's streams may take to finish.
pub const STOP_GRACE: Duration = Duration::from_secs(10);
