//! Plain types and their messages, in both dialects at once.

use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::id::{GatewayId, Generation, InstanceId, SandboxName, SessionId, StreamId};

use super::{
    Deletion, GatewayInfo, Health, Phase, Sandbox, ServiceStatus, Session, SshSession, Stream, User,
};
use crate::convert;
use crate::decode::{DecodeError, required};
use crate::proto::{openshell as proto, tidegate};

/// The workspace of every sandbox, for clients that expect one.
const WORKSPACE: &str = "default";

/// Reads the name of a sandbox.
pub(super) fn sandbox_name(field: &'static str, text: String) -> Result<SandboxName, DecodeError> {
    let text = required(field, text)?;
    SandboxName::parse(&text).map_err(|error| DecodeError::bad(field, error))
}

fn ids<T>(texts: Vec<String>, new: impl Fn(String) -> T) -> Vec<T> {
    texts.into_iter().map(new).collect()
}

impl From<ServiceStatus> for proto::ServiceStatus {
    fn from(status: ServiceStatus) -> Self {
        match status {
            ServiceStatus::Healthy => Self::Healthy,
            ServiceStatus::Degraded => Self::Degraded,
            ServiceStatus::Unhealthy => Self::Unhealthy,
        }
    }
}

impl From<proto::ServiceStatus> for ServiceStatus {
    fn from(status: proto::ServiceStatus) -> Self {
        match status {
            proto::ServiceStatus::Healthy => Self::Healthy,
            proto::ServiceStatus::Degraded => Self::Degraded,
            proto::ServiceStatus::Unhealthy | proto::ServiceStatus::Unspecified => Self::Unhealthy,
        }
    }
}

impl From<Health> for proto::HealthResponse {
    fn from(health: Health) -> Self {
        let status = proto::ServiceStatus::from(health.status);
        Self {
            status: status.into(),
            version: health.version,
        }
    }
}

impl From<proto::HealthResponse> for Health {
    fn from(health: proto::HealthResponse) -> Self {
        Self {
            status: health.status().into(),
            version: health.version,
        }
    }
}

impl From<GatewayInfo> for proto::GetGatewayInfoResponse {
    fn from(info: GatewayInfo) -> Self {
        Self {
            status: proto::ServiceStatus::from(info.status).into(),
            gateway_version: info.version,
            gateway_id: info.gateway.to_string(),
        }
    }
}

impl From<proto::GetGatewayInfoResponse> for GatewayInfo {
    fn from(info: proto::GetGatewayInfoResponse) -> Self {
        Self {
            status: info.status().into(),
            version: info.gateway_version,
            gateway: GatewayId::new(info.gateway_id),
        }
    }
}

impl From<User> for proto::GetCurrentUserResponse {
    fn from(user: User) -> Self {
        let User {
            subject,
            display_name,
            roles,
            scopes,
            identity_provider,
        } = user;
        Self {
            subject,
            display_name,
            roles,
            scopes,
            identity_provider,
        }
    }
}

impl From<proto::GetCurrentUserResponse> for User {
    fn from(user: proto::GetCurrentUserResponse) -> Self {
        let proto::GetCurrentUserResponse {
            subject,
            display_name,
            roles,
            scopes,
            identity_provider,
        } = user;
        Self {
            subject,
            display_name,
            roles,
            scopes,
            identity_provider,
        }
    }
}

/// Each phase and its number.
const PHASES: [(Phase, proto::SandboxPhase); 10] = [
    (Phase::Unspecified, proto::SandboxPhase::Unspecified),
    (Phase::Provisioning, proto::SandboxPhase::Provisioning),
    (Phase::Ready, proto::SandboxPhase::Ready),
    (Phase::Error, proto::SandboxPhase::Error),
    (Phase::Deleting, proto::SandboxPhase::Deleting),
    (Phase::Unknown, proto::SandboxPhase::Unknown),
    (Phase::Stopping, proto::SandboxPhase::Stopping),
    (Phase::Stopped, proto::SandboxPhase::Stopped),
    (Phase::Starting, proto::SandboxPhase::Starting),
    (Phase::Completed, proto::SandboxPhase::Completed),
];

fn phase_number(phase: Phase) -> i32 {
    PHASES
        .iter()
        .find(|(ours, _)| *ours == phase)
        .map_or(0, |(_, theirs)| (*theirs).into())
}

fn phase(number: proto::SandboxPhase) -> Phase {
    PHASES
        .iter()
        .find(|(_, theirs)| *theirs == number)
        .map_or(Phase::Unspecified, |(ours, _)| *ours)
}

impl From<Sandbox> for proto::Sandbox {
    fn from(sandbox: Sandbox) -> Self {
        let metadata = proto::ObjectMeta {
            id: sandbox.name.to_string(),
            name: sandbox.name.to_string(),
            created_at_ms: sandbox.created.map(convert::millis).unwrap_or_default(),
            workspace: WORKSPACE.to_owned(),
            created_time: sandbox.created.map(convert::timestamp),
            ..proto::ObjectMeta::default()
        };
        let instance = sandbox.instance.map(|instance| instance.to_string());
        let status = proto::SandboxStatus {
            phase: phase_number(sandbox.phase),
            main_process_instance_id: instance.unwrap_or_default(),
        };
        Self {
            metadata: Some(metadata),
            status: Some(status),
            homes: sandbox.homes.iter().map(ToString::to_string).collect(),
            sessions: sandbox.sessions,
            since: sandbox.since.map(convert::timestamp),
        }
    }
}

impl TryFrom<proto::Sandbox> for Sandbox {
    type Error = DecodeError;

    fn try_from(sandbox: proto::Sandbox) -> Result<Self, DecodeError> {
        let metadata = sandbox.metadata.unwrap_or_default();
        let status = sandbox.status.unwrap_or_default();
        let created = convert::time(metadata.created_time)
            .or_else(|| convert::time_of_millis(metadata.created_at_ms));
        Ok(Self {
            name: sandbox_name("sandbox.metadata.name", metadata.name)?,
            phase: phase(status.phase()),
            homes: ids(sandbox.homes, GatewayId::new),
            sessions: sandbox.sessions,
            instance: Some(status.main_process_instance_id)
                .filter(|id| !id.is_empty())
                .map(InstanceId::new),
            created,
            since: convert::time(sandbox.since),
        })
    }
}

impl From<SshSession> for proto::CreateSshSessionResponse {
    fn from(session: SshSession) -> Self {
        Self {
            sandbox_id: session.sandbox.to_string(),
            token: session.token,
            gateway_host: session.gateway_host,
            gateway_port: u32::from(session.gateway_port),
            gateway_scheme: session.gateway_scheme,
            host_key_fingerprint: String::new(),
            expires_at_ms: session.expires.map(convert::millis).unwrap_or_default(),
            expiration_time: session.expires.map(convert::timestamp),
        }
    }
}

impl TryFrom<proto::CreateSshSessionResponse> for SshSession {
    type Error = DecodeError;

    fn try_from(session: proto::CreateSshSessionResponse) -> Result<Self, DecodeError> {
        Ok(Self {
            sandbox: sandbox_name("sandbox_id", session.sandbox_id)?,
            token: required("token", session.token)?,
            gateway_host: session.gateway_host,
            gateway_port: u16::try_from(session.gateway_port)
                .map_err(|error| DecodeError::bad("gateway_port", error))?,
            gateway_scheme: session.gateway_scheme,
            expires: convert::time(session.expiration_time)
                .or_else(|| convert::time_of_millis(session.expires_at_ms)),
        })
    }
}

impl Deletion {
    /// The outcome for either dialect: whether something was deleted, and what happened.
    pub(super) fn outcome(self) -> (bool, i32) {
        match self {
            Self::Done => (true, proto::DeletionOutcome::Completed.into()),
            Self::AlreadyAbsent => (false, proto::DeletionOutcome::AlreadyAbsent.into()),
        }
    }

    /// Reads the outcome in either dialect.
    pub(super) fn read(deleted: bool, outcome: proto::DeletionOutcome) -> Self {
        match outcome {
            proto::DeletionOutcome::Completed | proto::DeletionOutcome::Accepted => Self::Done,
            proto::DeletionOutcome::AlreadyAbsent => Self::AlreadyAbsent,
            proto::DeletionOutcome::Unspecified if deleted => Self::Done,
            proto::DeletionOutcome::Unspecified => Self::AlreadyAbsent,
        }
    }
}

impl From<Session> for tidegate::Session {
    fn from(session: Session) -> Self {
        Self {
            sandbox: session.sandbox.to_string(),
            session_id: session.session.to_string(),
            instance_id: session.instance.to_string(),
            gateway: session.gateway.to_string(),
            generation: session.generation.value(),
            state: session.state,
            since: session.since.map(convert::timestamp),
            capabilities: session.capabilities.names(),
            streams: session.streams,
        }
    }
}

impl TryFrom<tidegate::Session> for Session {
    type Error = DecodeError;

    fn try_from(session: tidegate::Session) -> Result<Self, DecodeError> {
        Ok(Self {
            sandbox: sandbox_name("session.sandbox", session.sandbox)?,
            session: SessionId::new(session.session_id),
            instance: InstanceId::new(session.instance_id),
            gateway: GatewayId::new(session.gateway),
            generation: Generation::new(session.generation),
            state: session.state,
            since: convert::time(session.since),
            capabilities: Capabilities::from_names(session.capabilities),
            streams: session.streams,
        })
    }
}

impl From<Stream> for tidegate::Stream {
    fn from(stream: Stream) -> Self {
        Self {
            id: stream.id.to_string(),
            sandbox: stream.sandbox.to_string(),
            kind: stream.kind,
            target: stream.target,
            state: stream.state,
            path: stream.path.iter().map(ToString::to_string).collect(),
            since: stream.since.map(convert::timestamp),
            bytes_up: stream.bytes_up,
            bytes_down: stream.bytes_down,
            user: stream.user,
        }
    }
}

impl TryFrom<tidegate::Stream> for Stream {
    type Error = DecodeError;

    fn try_from(stream: tidegate::Stream) -> Result<Self, DecodeError> {
        Ok(Self {
            id: StreamId::new(required("stream.id", stream.id)?),
            sandbox: sandbox_name("stream.sandbox", stream.sandbox)?,
            kind: stream.kind,
            target: stream.target,
            state: stream.state,
            path: ids(stream.path, GatewayId::new),
            since: convert::time(stream.since),
            bytes_up: stream.bytes_up,
            bytes_down: stream.bytes_down,
            user: stream.user,
        })
    }
}
