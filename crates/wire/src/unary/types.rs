//! What the unary methods are about.

use std::fmt;
use std::time::SystemTime;

use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::id::{GatewayId, Generation, InstanceId, SandboxName, SessionId, StreamId};

/// How well a gateway works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceStatus {
    /// As it should.
    Healthy,
    /// It serves what it has and takes nothing new, or lacks something it needs.
    Degraded,
    /// Not at all, or it does not say.
    Unhealthy,
}

/// What a gateway says when asked whether it works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// How well it works.
    pub status: ServiceStatus,
    /// Which version it is.
    pub version: String,
}

/// What a gateway says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayInfo {
    /// How well it works.
    pub status: ServiceStatus,
    /// Which version it is.
    pub version: String,
    /// Which gateway it is; empty text from gateways that do not say.
    pub gateway: GatewayId,
}

/// Who a gateway takes a caller for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name that permissions are bound to.
    pub subject: String,
    /// A name for people.
    pub display_name: String,
    /// What the user is.
    pub roles: Vec<String>,
    /// What the credential allows.
    pub scopes: Vec<String>,
    /// Who vouches for the user.
    pub identity_provider: String,
}

/// Where a sandbox is in its life. Gateways of ours know `Provisioning`, `Ready` and `Unknown`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The gateway does not say, or says what is not known here.
    Unspecified,
    /// Never had a session.
    Provisioning,
    /// Has a live session.
    Ready,
    /// Failed.
    Error,
    /// Is being deleted.
    Deleting,
    /// Had a session.
    Unknown,
    /// Is being stopped.
    Stopping,
    /// Was stopped.
    Stopped,
    /// Is being started.
    Starting,
    /// Has done its work.
    Completed,
}

impl Phase {
    /// The word for it in tables and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "UNSPECIFIED",
            Self::Provisioning => "PROVISIONING",
            Self::Ready => "READY",
            Self::Error => "ERROR",
            Self::Deleting => "DELETING",
            Self::Unknown => "UNKNOWN",
            Self::Stopping => "STOPPING",
            Self::Stopped => "STOPPED",
            Self::Starting => "STARTING",
            Self::Completed => "COMPLETED",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A sandbox as a gateway knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// Its name, which is its id too.
    pub name: SandboxName,
    /// Where it is in its life.
    pub phase: Phase,
    /// The gateways that hold a session of it.
    pub homes: Vec<GatewayId>,
    /// How many sessions those are.
    pub sessions: u32,
    /// Which supervisor process serves it, if one does and says so.
    pub instance: Option<InstanceId>,
    /// When the gateway first knew of it, where that is known.
    pub created: Option<SystemTime>,
    /// When it entered its phase, where that is known.
    pub since: Option<SystemTime>,
}

/// A token that authorises streams to one sandbox.
#[derive(Clone, PartialEq, Eq)]
pub struct SshSession {
    /// Which sandbox.
    pub sandbox: SandboxName,
    /// The token. Secret.
    pub token: String,
    /// Where the gateway is, as the client should call it.
    pub gateway_host: String,
    /// On which port.
    pub gateway_port: u16,
    /// `http` or `https`.
    pub gateway_scheme: String,
    /// When the token stops working, if it does.
    pub expires: Option<SystemTime>,
}

impl fmt::Debug for SshSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SshSession")
            .field("sandbox", &self.sandbox)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// What a deletion did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// It is gone.
    Done,
    /// Nobody knew it.
    AlreadyAbsent,
}

/// A supervisor's session, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Which sandbox it serves.
    pub sandbox: SandboxName,
    /// Its name.
    pub session: SessionId,
    /// Which supervisor process it belongs to; empty text from peers that do not say.
    pub instance: InstanceId,
    /// The gateway that holds it.
    pub gateway: GatewayId,
    /// Its fencing token.
    pub generation: Generation,
    /// `live` or `draining`; a newer gateway may say more.
    pub state: String,
    /// When it was accepted, where that is known.
    pub since: Option<SystemTime>,
    /// What both ends understand.
    pub capabilities: Capabilities,
    /// How many streams it carries.
    pub streams: u64,
}

/// A byte stream, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Its name, for closing it.
    pub id: StreamId,
    /// Which sandbox it leads to.
    pub sandbox: SandboxName,
    /// `forward` or `ssh`; a newer gateway may say more.
    pub kind: String,
    /// Where in the sandbox it leads.
    pub target: String,
    /// A word for what it is doing.
    pub state: String,
    /// The gateways it passes, from the client's on.
    pub path: Vec<GatewayId>,
    /// When it was opened, where that is known.
    pub since: Option<SystemTime>,
    /// Payload handed on towards the target.
    pub bytes_up: u64,
    /// Payload handed on towards the client.
    pub bytes_down: u64,
    /// Whose it is; empty where nobody is authenticated.
    pub user: String,
}
