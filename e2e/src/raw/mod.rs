//! Peers that do as they are told, in front of real programs: clients of `ForwardTcp`, and
//! supervisors. In every topology; frames and messages come from the test kit.

mod client;
mod connect;
mod supervisor;

pub use self::client::{Answer, Client, Forward, init};
pub use self::connect::connect;
pub use self::supervisor::{Relay, Supervisor};

/// All that a peer of ours offers for a stream.
pub const STREAM: [&str; 3] = [
    "stream-half-close-v1",
    "stream-explicit-fin-v1",
    "frame-limit-v1",
];

/// All that a supervisor of ours offers, but for liveness: a test need not send heartbeats.
pub const SESSION: [&str; 5] = [
    "stream-half-close-v1",
    "stream-explicit-fin-v1",
    "relay-abort-v1",
    "frame-limit-v1",
    "session-drain-v1",
];

fn owned(capabilities: &[&str]) -> Vec<String> {
    capabilities.iter().map(|&name| name.to_owned()).collect()
}
