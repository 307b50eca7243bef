//! The first frame of a stream: what it is for, and what its opener understands.

use std::fmt;

use bytes::Bytes;
use prost::Message;
use tidegate_lifecycle::id::{ChannelId, SandboxName, SessionId};
use tidegate_lifecycle::{Capabilities, Capability, Target};

use crate::convert;
use crate::decode::{DecodeError, required};
use crate::message;
use crate::proto::openshell::{self as proto, relay_frame, tcp_forward_frame, tcp_forward_init};

/// The first frame of ForwardTcp.
#[derive(Clone, PartialEq, Eq)]
pub struct ForwardInit {
    /// Which sandbox to reach.
    pub sandbox: SandboxName,
    /// The workspace it is in; empty where nobody says.
    pub workspace: String,
    /// A name for people; empty where nobody says.
    pub service_id: String,
    /// Where in the sandbox the stream leads.
    pub target: Target,
    /// The token from CreateSshSession; empty where the caller has none. Secret.
    pub token: String,
    /// What the client understands.
    pub capabilities: Capabilities,
}

impl ForwardInit {
    /// A request of ours for a stream to `target`.
    pub fn new(sandbox: SandboxName, target: Target) -> Self {
        Self {
            sandbox,
            workspace: String::new(),
            service_id: String::new(),
            target,
            token: String::new(),
            capabilities: Capabilities::STREAM,
        }
    }

    /// Reads what [`Frame::Init`](super::Frame::Init) holds.
    ///
    /// # Errors
    ///
    /// Names the field that is missing or bad.
    pub fn parse(init: &Bytes) -> Result<Self, DecodeError> {
        let init = proto::TcpForwardInit::decode(init.clone())?;
        let sandbox = required("sandbox", init.sandbox)?;
        Ok(Self {
            sandbox: SandboxName::parse(&sandbox).map_err(|e| DecodeError::bad("sandbox", e))?,
            workspace: init.workspace,
            service_id: init.service_id,
            target: match init.target {
                Some(tcp_forward_init::Target::Ssh(_)) => Target::Ssh,
                Some(tcp_forward_init::Target::Tcp(tcp)) => convert::tcp_target(&tcp)?,
                None => return Err(DecodeError::Missing { field: "target" }),
            },
            token: init.authorization_token,
            capabilities: Capabilities::from_names(init.capabilities),
        })
    }

    /// The whole message to send.
    pub fn encode(&self) -> Bytes {
        let target = match &self.target {
            Target::Ssh => Some(tcp_forward_init::Target::Ssh(proto::SshRelayTarget {})),
            Target::Tcp { host, port } => {
                Some(tcp_forward_init::Target::Tcp(proto::TcpRelayTarget {
                    host: host.clone(),
                    port: u32::from(*port),
                }))
            }
            // A command has RPCs of its own: this is refused by whoever reads it.
            Target::Exec => None,
        };
        let init = proto::TcpForwardInit {
            sandbox: self.sandbox.to_string(),
            workspace: self.workspace.clone(),
            service_id: self.service_id.clone(),
            target,
            authorization_token: self.token.clone(),
            capabilities: self.capabilities.names(),
        };
        let payload = Some(tcp_forward_frame::Payload::Init(init));
        message::encode(&proto::TcpForwardFrame { payload })
    }
}

impl fmt::Debug for ForwardInit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForwardInit")
            .field("sandbox", &self.sandbox)
            .field("target", &self.target)
            .field("capabilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

/// The first frame of RelayStream: a supervisor claims a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayInit {
    /// The relay that the gateway asked for.
    pub channel: ChannelId,
    /// The session in which it asked; none from legacy supervisors.
    pub session: Option<SessionId>,
    /// What this stream speaks.
    pub capabilities: Capabilities,
}

impl RelayInit {
    /// Reads what [`Frame::Init`](super::Frame::Init) holds.
    ///
    /// # Errors
    ///
    /// Names the field that is missing: the channel, or the session of a claim with capabilities.
    pub fn parse(init: &Bytes) -> Result<Self, DecodeError> {
        let init = proto::RelayInit::decode(init.clone())?;
        let capabilities = Capabilities::from_names(init.capabilities);
        let session = Some(init.session_id).filter(|id| !id.is_empty());
        if session.is_none() && capabilities.has(Capability::StreamHalfClose) {
            return Err(DecodeError::Missing {
                field: "session_id",
            });
        }
        Ok(Self {
            channel: ChannelId::new(required("channel_id", init.channel_id)?),
            session: session.map(SessionId::new),
            capabilities,
        })
    }

    /// The whole message to send.
    pub fn encode(&self) -> Bytes {
        let init = proto::RelayInit {
            channel_id: self.channel.to_string(),
            capabilities: self.capabilities.names(),
            session_id: self
                .session
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
        };
        message::encode(&proto::RelayFrame {
            payload: Some(relay_frame::Payload::Init(init)),
        })
    }
}

#[cfg(test)]
mod tests;
