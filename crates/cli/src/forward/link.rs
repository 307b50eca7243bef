//! Whether the way to a sandbox is there, as the connections and the watch see it.
//!
//! ```text
//!            lost               deleted
//!   Up ─────────────▶ Out ─────────────────▶ Gone
//!    ▲                 ▲                      │
//!    └── served ───────┴──────── lost ────────┘   (served: from Gone too)
//! ```
//!
//! Each change is news, told once; what only confirms the state is not.

use tidegate_client::Reason;

/// The way, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Link {
    /// New connections get through.
    #[default]
    Up,
    /// A part of the way is missing and will come back.
    Out,
    /// The sandbox was deleted.
    Gone,
}

/// What an end says about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// One stream and its target.
    Stream,
    /// Every stream: a part of the way is missing.
    Way,
    /// The sandbox: it is no more.
    Sandbox,
}

impl Link {
    /// Something ended or failed because of `concern`. Says whether that is news.
    pub(super) fn failed(&mut self, concern: Concern) -> bool {
        let next = match concern {
            Concern::Stream => *self,
            Concern::Way => Self::Out,
            Concern::Sandbox => Self::Gone,
        };
        std::mem::replace(self, next) != next
    }

    /// A stream was opened, or the gateway says that one could be. Says whether that is news.
    pub(super) fn served(&mut self) -> bool {
        std::mem::replace(self, Self::Up) != Self::Up
    }
}

impl Concern {
    /// What an end with this reason says about.
    pub(super) const fn of(reason: Reason) -> Self {
        match reason {
            Reason::SandboxNotFound => Self::Sandbox,
            Reason::NoSession
            | Reason::SupervisorLost
            | Reason::SupervisorStopped
            | Reason::HeartbeatTimeout
            | Reason::Superseded
            | Reason::OwnerLost
            | Reason::PeerLost
            | Reason::PeerUnconfigured
            | Reason::TransportLost
            | Reason::GatewayDraining
            | Reason::DirectoryUnavailable
            | Reason::CredentialInvalid
            | Reason::CredentialExpired
            | Reason::CredentialRevoked => Self::Way,
            // What stands in front of a gateway that is away says UNAVAILABLE, and no more.
            Reason::Foreign(code) if code.value() == 14 => Self::Way,
            Reason::ClientCancelled
            | Reason::ClientReset
            | Reason::OperatorClosed
            | Reason::InitTimeout
            | Reason::RelayOpenTimeout
            | Reason::DialTimeout
            | Reason::OperationTimeout
            | Reason::IdleTimeout
            | Reason::HalfCloseIdle
            | Reason::WriteStalled
            | Reason::ProtocolViolation
            | Reason::InvalidRequest
            | Reason::FrameTooLarge
            | Reason::LimitPending
            | Reason::LimitStreams
            | Reason::LimitSessions
            | Reason::LimitExecs
            | Reason::LimitRate
            | Reason::LimitMemory
            | Reason::LimitResources
            | Reason::PeerViolation
            | Reason::TargetRefused
            | Reason::TargetUnreachable
            | Reason::TargetReset
            | Reason::ChannelUnknown
            | Reason::CapabilityRequired
            | Reason::VersionUnsupported
            | Reason::StaleSession
            | Reason::StaleOwner
            | Reason::ExecNotFound
            | Reason::ExecNotExecutable
            | Reason::ExecBadWorkdir
            | Reason::ExecStartFailed
            | Reason::DuplicateChannel
            | Reason::DuplicateSession
            | Reason::TargetNotAllowed
            | Reason::NotPermitted
            | Reason::InternalError
            | Reason::Foreign(_) => Self::Stream,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_news_once() {
        let mut link = Link::default();
        assert!(!link.served());
        assert!(link.failed(Concern::Way));
        assert!(!link.failed(Concern::Way));
        assert!(!link.failed(Concern::Stream));
        assert!(link.failed(Concern::Sandbox));
        assert!(!link.failed(Concern::Sandbox));
        assert!(link.failed(Concern::Way));
        assert!(link.served());
        assert!(!link.served());
    }

    #[test]
    fn a_target_that_refuses_is_no_outage() {
        assert_eq!(Concern::of(Reason::TargetRefused), Concern::Stream);
        assert_eq!(Concern::of(Reason::SupervisorLost), Concern::Way);
        assert_eq!(Concern::of(Reason::SandboxNotFound), Concern::Sandbox);
    }
}
