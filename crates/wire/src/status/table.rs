//! The table: each reason and the code that belongs to it (architecture/lifecycle.md, causes).

use tidegate_lifecycle::{Origin, Reason};
use tonic::Code;

use crate::proto::openshell::RelayCloseCode;

/// The code that belongs to a reason.
pub fn code(reason: Reason) -> Code {
    match reason {
        Reason::ClientCancelled | Reason::ClientReset | Reason::OperatorClosed => Code::Cancelled,
        Reason::InitTimeout
        | Reason::RelayOpenTimeout
        | Reason::DialTimeout
        | Reason::OperationTimeout
        | Reason::IdleTimeout
        | Reason::HalfCloseIdle
        | Reason::WriteStalled => Code::DeadlineExceeded,
        Reason::ProtocolViolation | Reason::InvalidRequest => Code::InvalidArgument,
        Reason::FrameTooLarge
        | Reason::LimitPending
        | Reason::LimitStreams
        | Reason::LimitSessions
        | Reason::LimitExecs
        | Reason::LimitRate
        | Reason::LimitMemory
        | Reason::LimitResources => Code::ResourceExhausted,
        Reason::PeerViolation
        | Reason::TargetRefused
        | Reason::TargetUnreachable
        | Reason::TargetReset
        | Reason::NoSession
        | Reason::SupervisorLost
        | Reason::SupervisorStopped
        | Reason::HeartbeatTimeout
        | Reason::Superseded
        | Reason::OwnerLost
        | Reason::PeerLost
        | Reason::PeerUnconfigured
        | Reason::TransportLost
        | Reason::GatewayDraining
        | Reason::DirectoryUnavailable => Code::Unavailable,
        Reason::SandboxNotFound | Reason::ChannelUnknown => Code::NotFound,
        Reason::CapabilityRequired
        | Reason::VersionUnsupported
        | Reason::StaleSession
        | Reason::StaleOwner
        | Reason::ExecNotFound
        | Reason::ExecNotExecutable
        | Reason::ExecBadWorkdir
        | Reason::ExecStartFailed => Code::FailedPrecondition,
        Reason::DuplicateChannel | Reason::DuplicateSession => Code::AlreadyExists,
        Reason::TargetNotAllowed | Reason::NotPermitted => Code::PermissionDenied,
        Reason::CredentialInvalid | Reason::CredentialExpired | Reason::CredentialRevoked => {
            Code::Unauthenticated
        }
        Reason::InternalError => Code::Internal,
        Reason::Foreign(code) => Code::from_i32(i32::from(failure(u32::from(code.value())))),
    }
}

/// The number of a failure's code. What is none of the sixteen, 0 among them, is UNAVAILABLE: a
/// failure must never look like success.
pub(crate) fn failure(number: u32) -> u8 {
    match u8::try_from(number) {
        Ok(number @ 1..=16) => number,
        _ => self::number(Code::Unavailable),
    }
}

/// The number of a code on the wire.
pub const fn number(code: Code) -> u8 {
    code as u8
}

/// The name of a code as the gRPC specification writes it.
pub const fn name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

/// The nearest of the few codes that a `RelayClose` can carry, as its number: never 0.
pub fn relay_close_code(reason: Reason) -> i32 {
    let nearest = match code(reason) {
        Code::Cancelled => RelayCloseCode::Cancelled,
        Code::DeadlineExceeded => RelayCloseCode::DeadlineExceeded,
        Code::InvalidArgument => RelayCloseCode::InvalidArgument,
        Code::Ok
        | Code::Unknown
        | Code::NotFound
        | Code::AlreadyExists
        | Code::PermissionDenied
        | Code::ResourceExhausted
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::Unavailable
        | Code::DataLoss
        | Code::Unauthenticated => RelayCloseCode::Unavailable,
    };
    nearest.into()
}

/// What a `RelayClose` from `sender` means that has a code and no cause; none if the code says
/// nothing either. Codes unknown here mean UNAVAILABLE.
pub(crate) fn relay_close_reason(code: i32, sender: Origin) -> Option<(Origin, Reason)> {
    match RelayCloseCode::try_from(code) {
        Ok(RelayCloseCode::Unspecified) => None,
        Ok(RelayCloseCode::Cancelled) => Some((Origin::Client, Reason::ClientCancelled)),
        Ok(RelayCloseCode::DeadlineExceeded) => Some((sender, Reason::OperationTimeout)),
        Ok(RelayCloseCode::InvalidArgument) => Some((sender, Reason::ProtocolViolation)),
        Ok(RelayCloseCode::Unavailable) | Err(_) => Some((sender, Reason::TransportLost)),
    }
}
