//! What a supervisor is doing, for those who watch it.

use tidegate_lifecycle::id::SessionId;

/// What a supervisor is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No session stands; a gateway is dialled, or will be.
    Dialling,
    /// A session stands.
    Live {
        /// The gateway's URL.
        gateway: String,
        /// The session.
        session: SessionId,
    },
    /// It is ending: what is open may finish.
    Leaving,
}

impl Phase {
    /// Whether a session stands that takes streams.
    pub const fn is_live(&self) -> bool {
        match self {
            Self::Live { .. } => true,
            Self::Dialling | Self::Leaving => false,
        }
    }
}
