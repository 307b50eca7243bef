//! What one stream may do next on one hop.
//!
//! `local` is this side of the hop, `remote` its neighbour.
//!
//! ```text
//!            init accepted                    send FIN
//! AwaitInit ───────────────▶ Open ─────────────────────▶ HalfClosedLocal
//!     │                       │  recv FIN                    │ recv FIN
//!     │ anything else         ▼                              ▼
//!     ▼                HalfClosedRemote ──── send FIN ──▶ Closed(Finished)
//! Closed(Reset)               │
//!     ▲───────────────────────┴── abort: from every state but Closed
//! ```
//!
//! A state changes when a frame is queued, so nothing can be queued behind FIN. `Closed` is terminal
//! and the first cause stays: what arrives afterwards crossed our own end in flight and is ignored.

use std::fmt;

use thiserror::Error;

use crate::cause::Cause;

/// A stream as seen from this hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing but the first frame is legal yet.
    AwaitInit,
    /// Both directions flow.
    Open,
    /// We sent FIN; the neighbour may still send.
    HalfClosedLocal,
    /// The neighbour sent FIN; we may still send.
    HalfClosedRemote,
    /// Both directions have ended.
    Closed(Cause),
}

/// What can happen to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The neighbour's first frame.
    RecvInit,
    /// Bytes from the neighbour, also none at all.
    RecvData,
    /// The neighbour's FIN.
    RecvFin,
    /// The neighbour's FIN in a form that was not negotiated.
    RecvUnknownFin,
    /// A frame without a known payload.
    RecvUnknown,
    /// Our FIN.
    SendFin,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RecvInit => "an init",
            Self::RecvData => "data",
            Self::RecvFin => "a half-close",
            Self::RecvUnknownFin => "a half-close frame, which was not negotiated,",
            Self::RecvUnknown => "a frame without a known payload",
            Self::SendFin => "our half-close",
        })
    }
}

/// An event that is not legal in the state it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{event} is not legal {}", .state.situation())]
pub struct Violation {
    /// The state it found.
    pub state: State,
    /// What happened.
    pub event: Event,
}

/// What to do with bytes that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Hand them on.
    Deliver,
    /// The stream is over: drop them, give the credit back.
    Discard,
}

impl State {
    /// The neighbour's first frame was valid.
    ///
    /// # Errors
    ///
    /// When the stream is open already.
    pub fn recv_init(self) -> Result<Self, Violation> {
        match self {
            Self::AwaitInit => Ok(Self::Open),
            Self::Closed(_) => Ok(self),
            Self::Open | Self::HalfClosedLocal | Self::HalfClosedRemote => {
                Err(self.violated_by(Event::RecvInit))
            }
        }
    }

    /// The neighbour sent bytes.
    ///
    /// # Errors
    ///
    /// Before its first frame and after its FIN.
    pub fn recv_data(self) -> Result<Take, Violation> {
        match self {
            Self::Open | Self::HalfClosedLocal => Ok(Take::Deliver),
            Self::Closed(_) => Ok(Take::Discard),
            Self::AwaitInit | Self::HalfClosedRemote => Err(self.violated_by(Event::RecvData)),
        }
    }

    /// The neighbour sent FIN: no more bytes from it, ours still flow.
    ///
    /// # Errors
    ///
    /// Before its first frame and after its FIN.
    pub fn recv_fin(self) -> Result<Self, Violation> {
        match self {
            Self::Open => Ok(Self::HalfClosedRemote),
            Self::HalfClosedLocal => Ok(Self::Closed(Cause::Finished)),
            Self::Closed(_) => Ok(self),
            Self::AwaitInit | Self::HalfClosedRemote => Err(self.violated_by(Event::RecvFin)),
        }
    }

    /// The neighbour sent a frame without a known payload.
    ///
    /// # Errors
    ///
    /// In every state but `Closed`: nothing may be sent that was not negotiated.
    pub fn recv_unknown(self) -> Result<Self, Violation> {
        match self {
            Self::Closed(_) => Ok(self),
            Self::AwaitInit | Self::Open | Self::HalfClosedLocal | Self::HalfClosedRemote => {
                Err(self.violated_by(Event::RecvUnknown))
            }
        }
    }

    /// Our side has no more bytes to send.
    ///
    /// # Errors
    ///
    /// Before the stream is open and after our own FIN: a bug of the caller's.
    pub fn send_fin(self) -> Result<Self, Violation> {
        match self {
            Self::Open => Ok(Self::HalfClosedLocal),
            Self::HalfClosedRemote => Ok(Self::Closed(Cause::Finished)),
            Self::Closed(_) => Ok(self),
            Self::AwaitInit | Self::HalfClosedLocal => Err(self.violated_by(Event::SendFin)),
        }
    }

    /// Both directions end at once. The first cause stays.
    #[must_use]
    pub fn abort(self, cause: Cause) -> Self {
        match self {
            Self::Closed(_) => self,
            Self::AwaitInit | Self::Open | Self::HalfClosedLocal | Self::HalfClosedRemote => {
                Self::Closed(cause)
            }
        }
    }

    /// Whether our side may still send bytes.
    pub fn can_send(self) -> bool {
        match self {
            Self::Open | Self::HalfClosedRemote => true,
            Self::AwaitInit | Self::HalfClosedLocal | Self::Closed(_) => false,
        }
    }

    /// Whether the neighbour may still send bytes.
    pub fn can_recv(self) -> bool {
        match self {
            Self::Open | Self::HalfClosedLocal => true,
            Self::AwaitInit | Self::HalfClosedRemote | Self::Closed(_) => false,
        }
    }

    /// Whether both directions have ended.
    pub fn is_closed(self) -> bool {
        match self {
            Self::Closed(_) => true,
            Self::AwaitInit | Self::Open | Self::HalfClosedLocal | Self::HalfClosedRemote => false,
        }
    }

    /// The word used in JSON and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitInit => "opening",
            Self::Open => "open",
            Self::HalfClosedLocal => "half-closed-local",
            Self::HalfClosedRemote => "half-closed-remote",
            Self::Closed(_) => "closed",
        }
    }

    const fn violated_by(self, event: Event) -> Violation {
        Violation { state: self, event }
    }

    const fn situation(self) -> &'static str {
        match self {
            Self::AwaitInit => "before the init",
            Self::Open => "on an open stream",
            Self::HalfClosedLocal => "after our half-close",
            Self::HalfClosedRemote => "after the sender's half-close",
            Self::Closed(_) => "on a closed stream",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::{Origin, Reason};

    const RESET: Cause = Cause::Reset {
        origin: Origin::Target,
        reason: Reason::TargetReset,
    };

    #[test]
    fn every_state_answers_every_event() {
        let states = [
            State::AwaitInit,
            State::Open,
            State::HalfClosedLocal,
            State::HalfClosedRemote,
            State::Closed(Cause::Finished),
            State::Closed(RESET),
        ];
        let mut table = String::new();
        for state in states {
            let cells = [
                ("recv init", show(state.recv_init())),
                ("recv data", show(state.recv_data())),
                ("recv FIN", show(state.recv_fin())),
                ("recv unknown", show(state.recv_unknown())),
                ("send FIN", show(state.send_fin())),
                ("abort", format!("{:?}", state.abort(RESET))),
            ];
            for (event, outcome) in cells {
                table.push_str(&format!("{state:?} + {event} -> {outcome}\n"));
            }
        }
        insta::assert_snapshot!(table);
    }

    fn show<T: fmt::Debug>(outcome: Result<T, Violation>) -> String {
        match outcome {
            Ok(next) => format!("{next:?}"),
            Err(violation) => format!("violation: {violation}"),
        }
    }
}
