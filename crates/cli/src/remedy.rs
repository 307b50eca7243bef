//! What a person can do about an end: one sentence for each reason where there is something.

use tidegate_client::{End, Origin, Reason};

/// What to do, or nothing.
pub(crate) const fn of(end: &End) -> &'static str {
    match end.reason {
        Reason::SandboxNotFound => "`tidegate sandboxes` lists those that are known.",
        Reason::NoSession
        | Reason::SupervisorLost
        | Reason::SupervisorStopped
        | Reason::HeartbeatTimeout => {
            "Check that tidegate-supervisor runs in the sandbox and reaches the gateway."
        }
        Reason::TransportLost => {
            "Check that the gateway runs there and can be reached; `tidegate dev` starts one here."
        }
        Reason::GatewayDraining | Reason::OwnerLost | Reason::PeerLost | Reason::Superseded => {
            "Try again: another one takes over."
        }
        Reason::TargetRefused => {
            "Check that the program listens there, as seen from inside the sandbox."
        }
        Reason::TargetUnreachable | Reason::DialTimeout => {
            "Check the target, as seen from inside the sandbox."
        }
        Reason::RelayOpenTimeout => {
            "The supervisor is connected and does not answer: look at its log, and try again."
        }
        Reason::LimitPending
        | Reason::LimitStreams
        | Reason::LimitSessions
        | Reason::LimitExecs
        | Reason::LimitRate
        | Reason::LimitMemory => {
            "Try again later, or raise the limit in the gateway's configuration."
        }
        Reason::LimitResources => "Raise the limit on open files (`ulimit -n`) where it arose.",
        // No gateway has heard us: it was TLS that failed, and no token was sent.
        Reason::CredentialInvalid | Reason::CredentialExpired | Reason::CredentialRevoked
            if matches!(end.origin, Origin::Client) =>
        {
            "Give a certificate that the gateway accepts, with its key: --cert and --key, or a context \
             that has them."
        }
        Reason::CredentialInvalid | Reason::CredentialExpired | Reason::CredentialRevoked => {
            "Check --cert and --key, or the token in TIDEGATE_TOKEN or --token-file."
        }
        Reason::NotPermitted => "Ask whoever runs the gateway for permission.",
        Reason::VersionUnsupported | Reason::CapabilityRequired => {
            "Bring gateway, supervisor and tidegate to the same version."
        }
        Reason::ChannelUnknown => "`tidegate streams` lists those that are open.",
        Reason::PeerUnconfigured | Reason::DirectoryUnavailable => {
            "Whoever runs the gateway has to look at its log."
        }
        Reason::InternalError => "This is a bug: please report it with the gateway's log.",
        Reason::ClientCancelled
        | Reason::ClientReset
        | Reason::OperatorClosed
        | Reason::InitTimeout
        | Reason::OperationTimeout
        | Reason::IdleTimeout
        | Reason::HalfCloseIdle
        | Reason::WriteStalled
        | Reason::ProtocolViolation
        | Reason::InvalidRequest
        | Reason::FrameTooLarge
        | Reason::PeerViolation
        | Reason::TargetReset
        | Reason::StaleSession
        | Reason::StaleOwner
        | Reason::ExecNotFound
        | Reason::ExecNotExecutable
        | Reason::ExecBadWorkdir
        | Reason::ExecStartFailed
        | Reason::DuplicateChannel
        | Reason::DuplicateSession
        // The supervisor says itself what it allows.
        | Reason::TargetNotAllowed
        | Reason::Foreign(_) => "",
    }
}
