//! The first frame of PeerRelay: a gateway asks another one, which has the sandbox's session.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tidegate_lifecycle::id::{ChannelId, GatewayId, Generation, SandboxName, SessionId};
use tidegate_lifecycle::{Capabilities, Target};

use crate::decode::{DecodeError, required};
use crate::proto::openshell::{self as proto, peer_relay_frame, relay_open};
use crate::{convert, message, status};

/// The first frame of PeerRelay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInit {
    /// Which sandbox to reach.
    pub sandbox: SandboxName,
    /// The requester's name for the relay. Released owners pass it on to their supervisor.
    pub channel: ChannelId,
    /// Where in the sandbox the stream leads.
    pub target: Target,
    /// The gateway that asks.
    pub requester: GatewayId,
    /// What it understands.
    pub capabilities: Capabilities,
    /// The session it knows of; none from peers without a directory.
    pub session: Option<(SessionId, Generation)>,
    /// What is known of the command, if the target is one.
    pub command: Relayed,
}

/// What an owner is told of a command before its start comes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relayed {
    /// The program's name, for tables; empty where nobody says.
    pub program: String,
    /// How long the command may take to end when it is asked to.
    pub kill_grace: Option<Duration>,
}

impl PeerInit {
    /// Reads what [`Frame::Init`](super::Frame::Init) holds.
    ///
    /// # Errors
    ///
    /// Names the field that is missing or bad.
    pub fn parse(init: &Bytes) -> Result<Self, DecodeError> {
        let init = proto::PeerRelayInit::decode(init.clone())?;
        let sandbox = required("sandbox_id", init.sandbox_id)?;
        let open = init.relay_open.ok_or(DecodeError::Missing {
            field: "relay_open",
        })?;
        let session = Some(init.session_id).filter(|id| !id.is_empty());
        Ok(Self {
            sandbox: SandboxName::parse(&sandbox)
                .map_err(|error| DecodeError::bad("sandbox_id", error))?,
            channel: ChannelId::new(required("relay_open.channel_id", open.channel_id)?),
            target: match open.target {
                Some(relay_open::Target::Tcp(tcp)) => convert::tcp_target(&tcp)?,
                Some(relay_open::Target::Exec(_)) => Target::Exec,
                Some(relay_open::Target::Ssh(_)) | None => Target::Ssh,
            },
            requester: GatewayId::new(required("requester_replica_id", init.requester_replica_id)?),
            capabilities: Capabilities::from_names(init.capabilities),
            session: session.map(|id| (SessionId::new(id), Generation::new(init.generation))),
            command: Relayed {
                program: convert::bounded(&init.program, status::MAX_NAME).to_owned(),
                kill_grace: convert::length(init.kill_grace),
            },
        })
    }

    /// The whole message to send.
    pub fn encode(&self) -> Bytes {
        let target = match &self.target {
            Target::Ssh => relay_open::Target::Ssh(proto::SshRelayTarget {}),
            Target::Tcp { host, port } => relay_open::Target::Tcp(proto::TcpRelayTarget {
                host: host.clone(),
                port: u32::from(*port),
            }),
            Target::Exec => relay_open::Target::Exec(proto::ExecRelayTarget {}),
        };
        let open = proto::RelayOpen {
            channel_id: self.channel.to_string(),
            target: Some(target),
            service_id: String::new(),
            dial_timeout: None,
            lane: 0,
        };
        let (session, generation) = match &self.session {
            Some((session, generation)) => (session.to_string(), generation.value()),
            None => (String::new(), 0),
        };
        let init = proto::PeerRelayInit {
            sandbox_id: self.sandbox.to_string(),
            relay_open: Some(open),
            requester_replica_id: self.requester.to_string(),
            capabilities: self.capabilities.names(),
            session_id: session,
            generation,
            program: self.command.program.clone(),
            kill_grace: self.command.kill_grace.map(convert::duration),
        };
        message::encode(&proto::PeerRelayFrame {
            payload: Some(peer_relay_frame::Payload::Init(init)),
        })
    }
}

#[cfg(test)]
mod tests;
