//! Why a stream or a session ended: a closed vocabulary, carried across every hop unchanged.
//!
//! A [`Cause`] is small and `Copy`, so a state can hold it. An [`End`] is a cause together with what
//! a person wants to read: the sentence, the path it travelled, the channel it belongs to. Only
//! `wire::status` knows which gRPC code belongs to which [`Reason`].

use std::fmt;
use std::time::Duration;

use crate::id::{ChannelId, HopName};

/// Who ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The program that opened the stream, or the local socket behind it.
    Client,
    /// The gateway the client talks to, which for one gateway is also the owner.
    Gateway,
    /// Another gateway on the path.
    Peer,
    /// The supervisor inside the sandbox.
    Supervisor,
    /// What the supervisor dialled: a TCP target or a Unix socket.
    Target,
}

impl Origin {
    /// Every origin, for tables and tests.
    pub const ALL: [Self; 5] = [
        Self::Client,
        Self::Gateway,
        Self::Peer,
        Self::Supervisor,
        Self::Target,
    ];

    /// The word used on the wire, in JSON and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Gateway => "gateway",
            Self::Peer => "peer",
            Self::Supervisor => "supervisor",
            Self::Target => "target",
        }
    }

    /// The origin called `word`, if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|origin| origin.as_str() == word)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// Why a stream or a session did not finish.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])* $variant,)+
            /// A status without a reason of ours, from a peer that knows none: only its code is known.
            Foreign(ForeignCode),
        }

        impl Reason {
            /// Every reason of ours, for tables and tests.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word used on the wire, in JSON and in metrics.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                    Self::Foreign(_) => "FOREIGN",
                }
            }
        }
    };
}

reasons! {
    /// The caller cancelled the RPC or went away.
    ClientCancelled = "CLIENT_CANCELLED",
    /// The caller's local socket was reset.
    ClientReset = "CLIENT_RESET",
    /// An operator closed the stream or kicked the session.
    OperatorClosed = "OPERATOR_CLOSED",
    /// The first frame did not come in time.
    InitTimeout = "INIT_TIMEOUT",
    /// The supervisor did not answer a request for a relay in time.
    RelayOpenTimeout = "RELAY_OPEN_TIMEOUT",
    /// The target did not answer the connection attempt in time.
    DialTimeout = "DIAL_TIMEOUT",
    /// The deadline the caller set for the whole operation passed.
    OperationTimeout = "OPERATION_TIMEOUT",
    /// No byte moved for the configured time.
    IdleTimeout = "IDLE_TIMEOUT",
    /// One direction had ended and no byte moved in the other for the configured time.
    HalfCloseIdle = "HALF_CLOSE_IDLE",
    /// A reader took nothing for the configured time.
    WriteStalled = "WRITE_STALLED",
    /// The neighbour broke the protocol; said only to the one who did.
    ProtocolViolation = "PROTOCOL_VIOLATION",
    /// The first message misses a field or holds a bad one; the message names it.
    InvalidRequest = "INVALID_REQUEST",
    /// A data frame above the limit, from a peer that had promised to keep it or above the legacy one.
    FrameTooLarge = "FRAME_TOO_LARGE",
    /// Too many relays of this sandbox or gateway wait for their supervisor.
    LimitPending = "LIMIT_PENDING",
    /// Too many streams of this sandbox or gateway are open.
    LimitStreams = "LIMIT_STREAMS",
    /// Too many supervisors are connected.
    LimitSessions = "LIMIT_SESSIONS",
    /// Too many commands run at once.
    LimitExecs = "LIMIT_EXECS",
    /// Calls come too fast.
    LimitRate = "LIMIT_RATE",
    /// The process buffers as much as it may.
    LimitMemory = "LIMIT_MEMORY",
    /// No descriptors or processes are left.
    LimitResources = "LIMIT_RESOURCES",
    /// A violation, told to those who did not commit it.
    PeerViolation = "PEER_VIOLATION",
    /// Nothing listens on the target.
    TargetRefused = "TARGET_REFUSED",
    /// The target has no route, no address or no socket.
    TargetUnreachable = "TARGET_UNREACHABLE",
    /// The target reset the connection, or was cut off.
    TargetReset = "TARGET_RESET",
    /// No supervisor of the sandbox is connected.
    NoSession = "NO_SESSION",
    /// The supervisor's session was lost.
    SupervisorLost = "SUPERVISOR_LOST",
    /// The supervisor was stopped.
    SupervisorStopped = "SUPERVISOR_STOPPED",
    /// The neighbour was silent for three heartbeat intervals.
    HeartbeatTimeout = "HEARTBEAT_TIMEOUT",
    /// A newer session of the sandbox took over.
    Superseded = "SUPERSEDED",
    /// The gateway that owns the session was lost.
    OwnerLost = "OWNER_LOST",
    /// The gateway that asked for the stream was lost.
    PeerLost = "PEER_LOST",
    /// The gateway that owns the session has no address for its peers.
    PeerUnconfigured = "PEER_UNCONFIGURED",
    /// A connection broke, a stream was reset without a reason, or its end is missing.
    TransportLost = "TRANSPORT_LOST",
    /// The gateway is shutting down.
    GatewayDraining = "GATEWAY_DRAINING",
    /// The directory of sessions could not be asked.
    DirectoryUnavailable = "DIRECTORY_UNAVAILABLE",
    /// Nobody knows a sandbox of that name.
    SandboxNotFound = "SANDBOX_NOT_FOUND",
    /// No relay of that name waits here: unknown, another session's, used or expired.
    ChannelUnknown = "CHANNEL_UNKNOWN",
    /// The request needs something a hop on the path does not understand.
    CapabilityRequired = "CAPABILITY_REQUIRED",
    /// The neighbour speaks another major version.
    VersionUnsupported = "VERSION_UNSUPPORTED",
    /// The session named has been replaced. Spoken between hops only.
    StaleSession = "STALE_SESSION",
    /// The gateway asked no longer owns the session. Spoken between hops only.
    StaleOwner = "STALE_OWNER",
    /// The program to run does not exist.
    ExecNotFound = "EXEC_NOT_FOUND",
    /// The program to run may not be executed.
    ExecNotExecutable = "EXEC_NOT_EXECUTABLE",
    /// The working directory does not exist.
    ExecBadWorkdir = "EXEC_BAD_WORKDIR",
    /// The program could not be started for another cause, which the message names.
    ExecStartFailed = "EXEC_START_FAILED",
    /// A relay of that name exists.
    DuplicateChannel = "DUPLICATE_CHANNEL",
    /// The supervisor has a session with this gateway already.
    DuplicateSession = "DUPLICATE_SESSION",
    /// The target's address is not on the supervisor's allowlist.
    TargetNotAllowed = "TARGET_NOT_ALLOWED",
    /// The caller may not do this.
    NotPermitted = "NOT_PERMITTED",
    /// The credential is not valid.
    CredentialInvalid = "CREDENTIAL_INVALID",
    /// The credential was valid once.
    CredentialExpired = "CREDENTIAL_EXPIRED",
    /// The credential was taken back.
    CredentialRevoked = "CREDENTIAL_REVOKED",
    /// A bug of ours, and nothing else.
    InternalError = "INTERNAL_ERROR",
}

impl Reason {
    /// The reason called `word`, if it is one of ours.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|reason| reason.as_str() == word)
    }

    /// Whether it is said only to the one who broke the protocol.
    pub const fn is_violation(self) -> bool {
        matches!(
            self,
            Self::ProtocolViolation | Self::InvalidRequest | Self::FrameTooLarge
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A status code of a peer that gives no reason. Opaque here: `wire::status` reads and writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ForeignCode(u8);

impl ForeignCode {
    /// Wraps a code that has no reason of ours.
    pub const fn new(code: u8) -> Self {
        Self(code)
    }

    /// The code as it was received.
    pub const fn value(self) -> u8 {
        self.0
    }
}

/// How a stream closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// Both directions ended with FIN, and every byte was handed on.
    Finished,
    /// Both directions were cut; bytes may be lost, and both ends are told so.
    Reset {
        /// Who ended it.
        origin: Origin,
        /// Why.
        reason: Reason,
    },
}

impl Cause {
    /// The word for the reason: `FINISHED`, or that of the [`Reason`].
    pub const fn reason_word(self) -> &'static str {
        match self {
            Self::Finished => "FINISHED",
            Self::Reset { reason, .. } => reason.as_str(),
        }
    }
}

/// A cause on its way from the hop that observed it to both ends of the path.
///
/// A hop that passes it on keeps everything and appends itself with [`End::via`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// Who ended it.
    pub origin: Origin,
    /// Why.
    pub reason: Reason,
    /// A sentence for a person: what failed and what to do. Never parsed.
    pub message: String,
    /// The hops that observed or passed it on, nearest to the failure first.
    pub hops: Vec<HopName>,
    /// The relay it belongs to, where that is known.
    pub channel: Option<ChannelId>,
    /// When trying again may help, where that is known.
    pub retry_after: Option<Duration>,
    /// The code a command was seen to exit with, although its stream failed: two facts.
    pub exit_code: Option<i32>,
    /// What to do about it, where whoever observed it knows more than the reason tells: a sentence.
    /// It does not travel.
    pub remedy: Option<&'static str>,
}

impl End {
    /// At most this many hops are kept, so that a loop of peers cannot grow one without bound.
    pub const MAX_HOPS: usize = 8;

    /// An end observed here.
    pub fn new(origin: Origin, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            origin,
            reason,
            message: message.into(),
            hops: Vec::new(),
            channel: None,
            retry_after: None,
            exit_code: None,
            remedy: None,
        }
    }

    /// The same end with `hop` appended to its path, unless it is there as the last one.
    #[must_use]
    pub fn via(mut self, hop: &HopName) -> Self {
        if self.hops.last() != Some(hop) && self.hops.len() < Self::MAX_HOPS {
            self.hops.push(hop.clone());
        }
        self
    }

    /// The same end, of the relay `channel`.
    #[must_use]
    pub fn on(mut self, channel: ChannelId) -> Self {
        self.channel = Some(channel);
        self
    }

    /// The same end, worth another try after `delay`.
    #[must_use]
    pub fn retry_after(mut self, delay: Duration) -> Self {
        self.retry_after = Some(delay);
        self
    }

    /// The same end, of a command that was seen to exit with `code` before.
    #[must_use]
    pub const fn exit_code(mut self, code: i32) -> Self {
        self.exit_code = Some(code);
        self
    }

    /// The same end, with a sentence that says what to do about it here.
    #[must_use]
    pub const fn with_remedy(mut self, remedy: &'static str) -> Self {
        self.remedy = Some(remedy);
        self
    }

    /// The cause alone.
    pub const fn cause(&self) -> Cause {
        Cause::Reset {
            origin: self.origin,
            reason: self.reason,
        }
    }

    /// What those who did not commit a violation are told of it; every other end is passed on as
    /// it is.
    #[must_use]
    pub fn seen_from_afar(&self) -> Self {
        let mut far = self.clone();
        if self.reason.is_violation() {
            far.reason = Reason::PeerViolation;
        }
        far
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "{} ({})", self.reason, self.origin)
        } else {
            write!(f, "{} ({}, {})", self.message, self.reason, self.origin)
        }
    }
}

impl std::error::Error for End {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_unique_and_lead_back() {
        for reason in Reason::ALL {
            assert_eq!(Reason::from_word(reason.as_str()), Some(*reason));
        }
        for origin in Origin::ALL {
            assert_eq!(Origin::from_word(origin.as_str()), Some(origin));
        }
        assert_eq!(Reason::from_word("FOREIGN"), None);
    }

    #[test]
    fn a_path_names_each_hop_once_and_stays_short() {
        let hop = |n: usize| HopName::new(format!("gw{n}"));
        let mut end = End::new(Origin::Target, Reason::TargetReset, "reset");
        end = end.via(&hop(0)).via(&hop(0));
        assert_eq!(end.hops, [hop(0)]);
        for n in 1..100 {
            end = end.via(&hop(n));
        }
        assert_eq!(end.hops.len(), End::MAX_HOPS);
    }

    #[test]
    fn only_a_violation_changes_its_name_away_from_the_violator() {
        for reason in Reason::ALL {
            let far = End::new(Origin::Client, *reason, "m").seen_from_afar();
            let violation = matches!(
                reason,
                Reason::ProtocolViolation | Reason::InvalidRequest | Reason::FrameTooLarge
            );
            assert_eq!(
                far.reason,
                if violation {
                    Reason::PeerViolation
                } else {
                    *reason
                }
            );
            assert_eq!((far.origin, far.message.as_str()), (Origin::Client, "m"));
        }
    }
}
