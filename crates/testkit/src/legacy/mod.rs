//! Released peers, which know none of our capabilities, on the library the released ones use
//! (tonic): what they do on the wire is largely what it does.
//!
//! | peer | speaks to | and behaves so |
//! |---|---|---|
//! | [`Client`] | our gateway | pieces of 64 KiB, FIN is the end of the request stream |
//! | [`Supervisor`] | our gateway | pieces of 16 KiB, one connection for everything, never ends a relay's request stream on the target's FIN |
//! | [`Gateway`] | our supervisor | FIN is the end of the response stream, requests are read on after it |

mod client;
mod gateway;
mod rpc;
mod supervisor;

pub use self::{
    client::{Client, Download, Forward},
    gateway::{Gateway, GatewayOptions, Relay, RelayEnd, Session},
    supervisor::{Event, Heartbeats, Supervisor, SupervisorOptions},
};

/// Which released revision a peer speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// 0.0.x: sandboxes by id.
    #[default]
    Old,
    /// 0.1.x: sandboxes by name, redirects and pushed configuration.
    New,
    /// The proposed revision with FIN frames in the response direction.
    Proposed,
}

#[cfg(test)]
mod tests;
