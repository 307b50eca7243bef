//! The numbers of a connection, set by us and never inherited from the library.
//!
//! HTTP/2 libraries defend themselves by ending the *connection*, and with it every stream on it.
//! Each limit here is therefore either above anything our own traffic can reach, because something
//! of ours bounds it already, or a bound that costs one stream only.

use std::time::Duration;

/// Bytes of one stream that `h2` may hold for writing; more is not reported as capacity.
pub(crate) const SEND_BUDGET: usize = 256 * 1024;

/// The largest connection window of HTTP/2. Memory is bounded stream by stream, so that one that
/// stalls takes nothing from the others.
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

/// Headers of one message, uncompressed.
const HEADER_LIST: u32 = 64 * 1024;

/// Streams that a peer opened and reset before they were accepted. Accepting is a loop that never
/// waits, so that this bounds a burst within one read and nothing else.
const PENDING_ACCEPT_RESETS: usize = 100_000;

/// Streams that we reset and still remember for a second, so that what was under way to them is
/// recognised. A forgotten one costs an answer, not the connection.
const REMEMBERED_RESETS: usize = 1_024;

/// How a connection of ours behaves, on either side.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Bytes a peer may send on one stream before we give credit. 1 MiB.
    pub stream_window: u32,
    /// Largest frame that we accept, and therefore that a peer of ours sends: above a whole 64 KiB
    /// message, since frames are what costs time. 1 MiB.
    pub max_frame_size: u32,
    /// Streams that a client may have open (servers only). Above every policy limit: clients queue
    /// silently at the advertised one, and we prefer to refuse with a reason. 1,000,000.
    pub max_concurrent_streams: u32,
    /// Unary calls that may run at once on one connection (servers only); more are refused with
    /// `REFUSED_STREAM`, which a client may retry. 256.
    pub max_unary_calls: usize,
    /// When silence is taken for death. Every 20 s, 10 s each.
    pub ping: Option<Ping>,
    /// How long TLS and the HTTP/2 handshake may take (servers only). 10 s.
    pub handshake_timeout: Duration,
}

/// The rhythm of HTTP/2 PING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    /// From one answered PING to the next.
    pub interval: Duration,
    /// How long nothing at all may arrive after a PING.
    pub timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stream_window: 1024 * 1024,
            max_frame_size: 1024 * 1024,
            max_concurrent_streams: 1_000_000,
            max_unary_calls: 256,
            ping: Some(Ping::default()),
            handshake_timeout: Duration::from_secs(10),
        }
    }
}

impl Default for Ping {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(20),
            timeout: Duration::from_secs(10),
        }
    }
}

impl Settings {
    pub(crate) fn server(&self) -> h2::server::Builder {
        let mut builder = h2::server::Builder::new();
        builder
            .initial_window_size(self.stream_window)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(self.max_frame_size)
            .max_header_list_size(HEADER_LIST)
            .max_concurrent_streams(self.max_concurrent_streams)
            .max_concurrent_reset_streams(REMEMBERED_RESETS)
            .max_pending_accept_reset_streams(PENDING_ACCEPT_RESETS)
            .max_local_error_reset_streams(None)
            .max_send_buffer_size(SEND_BUDGET)
            .data_frame_budget(usize::MAX);
        builder
    }

    pub(crate) fn client(&self) -> h2::client::Builder {
        let mut builder = h2::client::Builder::new();
        builder
            .initial_window_size(self.stream_window)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(self.max_frame_size)
            .max_header_list_size(HEADER_LIST)
            .max_concurrent_reset_streams(REMEMBERED_RESETS)
            .max_local_error_reset_streams(None)
            .max_send_buffer_size(SEND_BUDGET)
            .data_frame_budget(usize::MAX)
            .enable_push(false)
            // Zero until the server has told its limit: that is how we learn that it has.
            .initial_max_send_streams(0);
        builder
    }
}
