//! What the two ends of a control stream say to each other, as closed enums.

use std::time::Duration;

use crate::id::{ChannelId, GatewayId, Generation, InstanceId, SandboxName, SessionId};
use crate::{Capabilities, End, Target};

/// The first message of a supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Which sandbox it serves.
    pub sandbox: SandboxName,
    /// Which process it is; empty text from peers that do not say.
    pub instance: InstanceId,
    /// What it understands.
    pub capabilities: Capabilities,
    /// The major version of the protocol it speaks; a peer that does not say speaks 1.
    pub protocol_version: u32,
    /// How many gateways it wants sessions with at once.
    pub homes: u8,
    /// The session that this one takes over from: it carries what it has and takes nothing new.
    pub replaces: Option<SessionId>,
    /// The gateways that it has sessions with: none of them is to take another.
    pub held: Vec<GatewayId>,
}

impl Hello {
    /// The most homes that anybody is given.
    pub const MAX_HOMES: u8 = 8;

    /// The hello of a process that wants one session and has none.
    pub const fn new(
        sandbox: SandboxName,
        instance: InstanceId,
        capabilities: Capabilities,
    ) -> Self {
        Self {
            sandbox,
            instance,
            capabilities,
            protocol_version: super::PROTOCOL_VERSION,
            homes: 1,
            replaces: None,
            held: Vec::new(),
        }
    }
}

/// What a gateway answers to a hello it accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The session's name.
    pub session: SessionId,
    /// The session's fencing token.
    pub generation: Generation,
    /// The interval of heartbeats, for both ends.
    pub heartbeat_interval: Duration,
    /// What both ends understand.
    pub capabilities: Capabilities,
    /// Which gateway this is.
    pub gateway: String,
    /// Where the gateways that are alive can be reached, as far as this one knows.
    pub gateways: Vec<String>,
    /// Where this one can be reached, whatever stands before it; none if it does not know.
    pub public_url: Option<String>,
}

/// A request for a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayOpen {
    /// The relay's name; the supervisor claims it with this.
    pub channel: ChannelId,
    /// Where to connect to.
    pub target: Target,
    /// How long the connection attempt may take; unset towards legacy peers.
    pub dial_timeout: Option<Duration>,
    /// Which of its data connections the supervisor should carry the relay on, so that both
    /// connections of a tunnel are served by one thread of the gateway.
    pub lane: u32,
}

/// How the end of a relay is told over the control stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayClose {
    /// From a peer without `relay-abort-v1`: worth a line in the log, nothing else.
    Advisory {
        /// Which relay.
        channel: ChannelId,
        /// What the peer said, never parsed.
        text: String,
    },
    /// The relay was aborted, in both directions.
    Abort {
        /// Which relay.
        channel: ChannelId,
        /// Why.
        end: End,
    },
}

impl RelayClose {
    /// Which relay it is about.
    pub const fn channel(&self) -> &ChannelId {
        match self {
            Self::Advisory { channel, .. } | Self::Abort { channel, .. } => channel,
        }
    }
}

/// What a supervisor says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromSupervisor {
    /// It introduces itself: first, and once.
    Hello(Hello),
    /// It is alive.
    Heartbeat,
    /// How a requested relay's connection attempt went.
    RelayOpenResult {
        /// Which relay.
        channel: ChannelId,
        /// `Err` with the cause when the target could not be connected.
        result: Result<(), End>,
    },
    /// It has ended a relay.
    RelayClose(RelayClose),
    /// It is stopping: no new relays, and those that are open end until then.
    Goodbye {
        /// How long what is open may take.
        deadline: Duration,
    },
    /// A message without a known payload: a newer peer's.
    Unknown,
}

/// What a gateway says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromGateway {
    /// The session stands.
    Accepted(Accepted),
    /// It does not; the status that follows says the same.
    Rejected {
        /// A sentence for a person.
        reason: String,
    },
    /// It is alive.
    Heartbeat,
    /// It asks for a relay.
    RelayOpen(RelayOpen),
    /// It has ended a relay.
    RelayClose(RelayClose),
    /// It asks for a session elsewhere, before this one is let go; what is open goes on.
    SessionDrain {
        /// When what is still open then will be ended.
        deadline: Duration,
        /// Where other gateways are, as far as it knows.
        alternatives: Vec<String>,
    },
    /// A message without a known payload: a newer peer's.
    Unknown,
}
