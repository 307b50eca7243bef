//! The protobuf messages of the streams, written down a second time: a test that spoke through the
//! types of `wire` could not notice a wrong field number there.
//!
//! One set serves all dialects. Where two of them use a number differently, the field here is the
//! one that can hold both, and says so.

#![expect(
    missing_docs,
    reason = "the fields are named after what the .proto files explain"
)]

use prost::{Message, Oneof};

/// The paths of the RPCs.
pub mod path {
    /// Client to gateway, one TCP stream.
    pub const FORWARD_TCP: &str = "/openshell.v1.OpenShell/ForwardTcp";
    /// Supervisor to gateway, the session.
    pub const CONNECT_SUPERVISOR: &str = "/openshell.v1.OpenShell/ConnectSupervisor";
    /// Supervisor to gateway, one relayed stream.
    pub const RELAY_STREAM: &str = "/openshell.v1.OpenShell/RelayStream";
    /// Client to gateway, the ticket that released gateways ask for before `ForwardTcp`.
    pub const CREATE_SSH_SESSION: &str = "/openshell.v1.OpenShell/CreateSshSession";
}

/// The capability of the proposed revision, the only one it knows.
pub const HALF_CLOSE: &str = "stream-half-close-v1";

/// A message without fields.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Empty {}

/// A TCP target.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct TcpTarget {
    #[prost(string, tag = "1")]
    pub host: String,
    #[prost(uint32, tag = "2")]
    pub port: u32,
}

/// The first message of `ForwardTcp`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ForwardInit {
    /// The id in the old dialect, the name in the new one.
    #[prost(string, tag = "1")]
    pub sandbox: String,
    #[prost(string, tag = "3")]
    pub workspace: String,
    #[prost(string, tag = "4")]
    pub service_id: String,
    #[prost(message, optional, tag = "5")]
    pub ssh: Option<Empty>,
    #[prost(message, optional, tag = "6")]
    pub tcp: Option<TcpTarget>,
    #[prost(string, tag = "7")]
    pub authorization_token: String,
    #[prost(string, repeated, tag = "8")]
    pub capabilities: Vec<String>,
}

/// A frame of `ForwardTcp`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ForwardFrame {
    #[prost(oneof = "ForwardPayload", tags = "1, 2, 3")]
    pub payload: Option<ForwardPayload>,
}

/// What a frame of `ForwardTcp` carries.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum ForwardPayload {
    #[prost(message, tag = "1")]
    Init(ForwardInit),
    #[prost(bytes = "bytes", tag = "2")]
    Data(bytes::Bytes),
    #[prost(message, tag = "3")]
    HalfClose(Empty),
}

/// The first message of `RelayStream`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RelayInit {
    #[prost(string, tag = "1")]
    pub channel_id: String,
    #[prost(string, repeated, tag = "2")]
    pub capabilities: Vec<String>,
    #[prost(string, tag = "3")]
    pub session_id: String,
}

/// A frame of `RelayStream`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RelayFrame {
    #[prost(oneof = "RelayPayload", tags = "1, 2, 3")]
    pub payload: Option<RelayPayload>,
}

/// What a frame of `RelayStream` carries.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum RelayPayload {
    #[prost(message, tag = "1")]
    Init(RelayInit),
    #[prost(bytes = "bytes", tag = "2")]
    Data(bytes::Bytes),
    #[prost(message, tag = "3")]
    HalfClose(Empty),
}

/// The first message of a session.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Hello {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
    #[prost(string, tag = "2")]
    pub instance_id: String,
    #[prost(uint64, tag = "3")]
    pub connection_epoch: u64,
    #[prost(bool, tag = "4")]
    pub supports_provider_readiness: bool,
    /// Capabilities in the proposed revision. The new dialect has a bool here, which is not on the
    /// wire while it is false.
    #[prost(string, repeated, tag = "5")]
    pub proposed_capabilities: Vec<String>,
    #[prost(bool, tag = "6")]
    pub supports_session_redirect: bool,
    #[prost(bool, tag = "7")]
    pub supports_config_push: bool,
    #[prost(string, repeated, tag = "200")]
    pub capabilities: Vec<String>,
    #[prost(uint32, tag = "201")]
    pub protocol_version: u32,
    #[prost(uint32, tag = "202")]
    pub homes: u32,
    #[prost(string, tag = "203")]
    pub replaces: String,
    #[prost(string, repeated, tag = "204")]
    pub held: Vec<String>,
}

/// A message from the supervisor.
#[derive(Clone, PartialEq, Message)]
pub struct SupervisorMessage {
    #[prost(oneof = "FromSupervisor", tags = "1, 2, 3, 4, 200")]
    pub payload: Option<FromSupervisor>,
}

/// What a supervisor says.
#[derive(Clone, PartialEq, Oneof)]
pub enum FromSupervisor {
    #[prost(message, tag = "1")]
    Hello(Hello),
    #[prost(message, tag = "2")]
    Heartbeat(Empty),
    #[prost(message, tag = "3")]
    RelayOpenResult(RelayOpenResult),
    #[prost(message, tag = "4")]
    RelayClose(RelayClose),
    #[prost(message, tag = "200")]
    Goodbye(Goodbye),
}

/// The supervisor is about to stop.
#[derive(Clone, PartialEq, Message)]
pub struct Goodbye {
    #[prost(message, optional, tag = "1")]
    pub deadline: Option<prost_types::Duration>,
}

/// A message from the gateway.
#[derive(Clone, PartialEq, Message)]
pub struct GatewayMessage {
    #[prost(oneof = "FromGateway", tags = "1, 2, 3, 4, 5, 200")]
    pub payload: Option<FromGateway>,
}

/// What a gateway says.
#[derive(Clone, PartialEq, Oneof)]
pub enum FromGateway {
    #[prost(message, tag = "1")]
    SessionAccepted(SessionAccepted),
    #[prost(message, tag = "2")]
    SessionRejected(SessionRejected),
    #[prost(message, tag = "3")]
    Heartbeat(Empty),
    #[prost(message, tag = "4")]
    RelayOpen(RelayOpen),
    #[prost(message, tag = "5")]
    RelayClose(RelayClose),
    #[prost(message, tag = "200")]
    SessionDrain(SessionDrain),
}

/// The supervisor is to open a session elsewhere.
#[derive(Clone, PartialEq, Message)]
pub struct SessionDrain {
    #[prost(message, optional, tag = "1")]
    pub deadline: Option<prost_types::Duration>,
    #[prost(string, repeated, tag = "2")]
    pub alternatives: Vec<String>,
}

/// The session is open.
#[derive(Clone, PartialEq, Message)]
pub struct SessionAccepted {
    #[prost(string, tag = "1")]
    pub session_id: String,
    #[prost(uint32, tag = "2")]
    pub heartbeat_interval_secs: u32,
    /// Capability names in the proposed revision, a [`ConfigUpdate`] in the new dialect.
    #[prost(bytes = "vec", repeated, tag = "3")]
    pub proposed_capabilities: Vec<Vec<u8>>,
    #[prost(bool, tag = "4")]
    pub config_push_enabled: bool,
    #[prost(message, optional, tag = "102")]
    pub heartbeat_interval: Option<prost_types::Duration>,
    #[prost(string, repeated, tag = "200")]
    pub capabilities: Vec<String>,
    #[prost(string, tag = "201")]
    pub gateway_id: String,
    #[prost(uint64, tag = "202")]
    pub generation: u64,
    #[prost(string, repeated, tag = "203")]
    pub gateways: Vec<String>,
    #[prost(string, tag = "204")]
    pub public_url: String,
}

/// What the new dialect reads in `SessionAccepted`'s field 3.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct ConfigUpdate {
    #[prost(string, tag = "1")]
    pub update_id: String,
    #[prost(bytes = "vec", tag = "2")]
    pub sandbox_config: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub provider_environment: Vec<u8>,
}

/// The session is refused.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct SessionRejected {
    #[prost(string, tag = "1")]
    pub reason: String,
}

/// The gateway wants a relay.
#[derive(Clone, PartialEq, Message)]
pub struct RelayOpen {
    #[prost(string, tag = "1")]
    pub channel_id: String,
    #[prost(message, optional, tag = "2")]
    pub ssh: Option<Empty>,
    #[prost(message, optional, tag = "3")]
    pub tcp: Option<TcpTarget>,
    #[prost(string, tag = "5")]
    pub service_id: String,
    #[prost(message, optional, tag = "200")]
    pub dial_timeout: Option<prost_types::Duration>,
    #[prost(uint32, tag = "201")]
    pub lane: u32,
}

/// The supervisor's answer.
#[derive(Clone, PartialEq, Message)]
pub struct RelayOpenResult {
    #[prost(string, tag = "1")]
    pub channel_id: String,
    #[prost(bool, tag = "2")]
    pub success: bool,
    #[prost(string, tag = "3")]
    pub error: String,
    #[prost(message, optional, tag = "200")]
    pub cause: Option<Cause>,
}

/// A relay is over.
#[derive(Clone, PartialEq, Message)]
pub struct RelayClose {
    #[prost(string, tag = "1")]
    pub channel_id: String,
    #[prost(string, tag = "2")]
    pub reason: String,
    /// 0 from a legacy peer, else the nearest of the proposed revision's four.
    #[prost(int32, tag = "3")]
    pub code: i32,
    #[prost(message, optional, tag = "200")]
    pub cause: Option<Cause>,
}

/// Why a stream ended.
#[derive(Clone, PartialEq, Message)]
pub struct Cause {
    #[prost(string, tag = "1")]
    pub reason: String,
    #[prost(string, tag = "2")]
    pub origin: String,
    #[prost(string, repeated, tag = "3")]
    pub hops: Vec<String>,
    #[prost(string, tag = "4")]
    pub message: String,
    #[prost(uint32, tag = "5")]
    pub status_code: u32,
    #[prost(message, optional, tag = "6")]
    pub retry_delay: Option<prost_types::Duration>,
}

/// Asks for the ticket of a `ForwardTcp`.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CreateSshSessionRequest {
    #[prost(string, tag = "1")]
    pub sandbox: String,
}

/// The ticket.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct CreateSshSessionResponse {
    #[prost(string, tag = "1")]
    pub sandbox_id: String,
    #[prost(string, tag = "2")]
    pub token: String,
}

impl ForwardFrame {
    /// Makes an init frame.
    pub fn init(init: ForwardInit) -> Self {
        Self {
            payload: Some(ForwardPayload::Init(init)),
        }
    }

    /// Makes a data frame.
    pub fn data(data: impl Into<bytes::Bytes>) -> Self {
        Self {
            payload: Some(ForwardPayload::Data(data.into())),
        }
    }

    /// Makes a FIN frame.
    pub fn half_close() -> Self {
        Self {
            payload: Some(ForwardPayload::HalfClose(Empty {})),
        }
    }
}

impl RelayFrame {
    /// Makes an init frame.
    pub fn init(init: RelayInit) -> Self {
        Self {
            payload: Some(RelayPayload::Init(init)),
        }
    }

    /// Makes a data frame.
    pub fn data(data: impl Into<bytes::Bytes>) -> Self {
        Self {
            payload: Some(RelayPayload::Data(data.into())),
        }
    }

    /// Makes a FIN frame.
    pub fn half_close() -> Self {
        Self {
            payload: Some(RelayPayload::HalfClose(Empty {})),
        }
    }
}

impl From<FromSupervisor> for SupervisorMessage {
    fn from(payload: FromSupervisor) -> Self {
        Self {
            payload: Some(payload),
        }
    }
}

impl From<FromGateway> for GatewayMessage {
    fn from(payload: FromGateway) -> Self {
        Self {
            payload: Some(payload),
        }
    }
}
