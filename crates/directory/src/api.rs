//! What a directory can be asked.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use thiserror::Error;
use tidegate_lifecycle::id::{GatewayId, Generation, InstanceId, SandboxName, SessionId};
use tidegate_lifecycle::ownership::Standing;

use crate::Watch;

/// One gateway's seat in a directory: what it may ask of it, and what it says there.
///
/// All seats of a directory know the same sandboxes and homes. What a seat records is recorded for the
/// [`Replica`] that it was made for.
///
/// Every method is cancel-safe: a call that is dropped was made or was not.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Records a session that this gateway has accepted. It is never refused; what becomes of those
    /// before it says [`settle`](tidegate_lifecycle::ownership::settle).
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`] when the engine cannot be asked.
    async fn claim(&self, claim: Claim) -> Result<Claimed, DirectoryError>;

    /// Takes a session back, and says whether it was still recorded: `false` when a later claim had
    /// ended it, which stays untouched.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn release(
        &self,
        sandbox: &SandboxName,
        session: &SessionId,
    ) -> Result<bool, DirectoryError>;

    /// Lists the sessions that a sandbox has, the best first: those that take streams before those
    /// that do not, the newer before the older.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn homes(&self, sandbox: &SandboxName) -> Result<Vec<Home>, DirectoryError>;

    /// Tells whether an open should wait for a session of the sandbox.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn known(&self, sandbox: &SandboxName) -> Result<Knowledge, DirectoryError>;

    /// Makes a sandbox known before it had a session. One that was forgotten is known again.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn declare(&self, sandbox: &SandboxName) -> Result<(), DirectoryError>;

    /// Forgets a sandbox for good, and returns what was known of it.
    ///
    /// Until a new session claims it the name is [`Knowledge::Deleted`].
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn forget(&self, sandbox: &SandboxName) -> Result<Option<SandboxEntry>, DirectoryError>;

    /// Returns what is known of one sandbox.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn entry(&self, sandbox: &SandboxName) -> Result<Option<SandboxEntry>, DirectoryError>;

    /// Lists every known sandbox, ordered by name.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn list(&self) -> Result<Vec<SandboxEntry>, DirectoryError>;

    /// Watches one sandbox. What happens after this call has returned is not missed.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn watch(&self, sandbox: &SandboxName) -> Result<Watch, DirectoryError>;

    /// Waits for the next thing that others have done to what this seat recorded. One caller at a
    /// time.
    async fn next_event(&self) -> Event;

    /// How old what is told may be.
    fn staleness(&self) -> Duration {
        Duration::ZERO
    }

    /// Gives the seat up, in an orderly way. Sessions that are still recorded become a last resort.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn leave(&self) -> Result<(), DirectoryError>;
}

/// A gateway, as long as it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The gateway.
    pub gateway: GatewayId,
    /// This run of it.
    pub incarnation: Incarnation,
    /// Where other gateways reach it; none where they cannot.
    pub peer_url: Option<String>,
    /// Where clients and supervisors reach it itself, and no other gateway.
    pub public_url: Option<String>,
}

/// One run of a gateway, told from those before and after it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Incarnation(Arc<str>);

impl Incarnation {
    /// Wraps a name that no other run has.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What another gateway did to a session of this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It is over: a session of this supervisor process took its place.
    Ended {
        /// Which.
        session: SessionId,
        /// The process.
        by: InstanceId,
    },
    /// It takes no more streams: one of the same process took its place.
    Drained {
        /// Which.
        session: SessionId,
    },
    /// Its sandbox was deleted.
    Forgotten {
        /// Which session.
        session: SessionId,
    },
}

/// Why a directory does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The engine cannot be reached, or did not answer in time.
    #[error("the directory of sessions cannot be asked: {0}")]
    Unavailable(String),
}

/// A session that a gateway has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which sandbox the session serves.
    pub sandbox: SandboxName,
    /// The session's name.
    pub session: SessionId,
    /// The supervisor process behind it; empty text from peers that do not say.
    pub instance: InstanceId,
    /// How many gateways that process wants sessions with.
    pub homes: u8,
    /// The session that it is to replace.
    pub replaces: Option<SessionId>,
}

/// What a claim led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The session's fencing token, greater than every one before it.
    pub generation: Generation,
    /// Sessions that are over with it. Their gateways hear of it.
    pub ended: Vec<Home>,
    /// Sessions that take no more streams. Their gateways hear of it.
    pub drained: Vec<Home>,
}

/// A gateway that holds a session of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The gateway.
    pub gateway: GatewayId,
    /// The session.
    pub session: SessionId,
    /// The supervisor process behind it.
    pub instance: InstanceId,
    /// The session's fencing token.
    pub generation: Generation,
    /// What it is good for.
    pub standing: Standing,
    /// Where other gateways reach the gateway.
    pub peer_url: Option<String>,
    /// Where clients and supervisors reach it.
    pub public_url: Option<String>,
    /// When it was claimed.
    pub since: SystemTime,
}

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// Declared, or seen with a session not too long ago.
    Known,
    /// Not known to this directory, which has not been there for long enough to be sure.
    Unsure,
    /// Never seen, or too long ago.
    Unknown,
    /// Forgotten by an operator.
    Deleted,
}

/// What is known of a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxEntry {
    /// Its name.
    pub name: SandboxName,
    /// The sessions it has, the best first.
    pub homes: Vec<Home>,
    /// Whether it ever had one.
    pub seen: bool,
    /// When it became known.
    pub created: SystemTime,
    /// When it got its present session, lost its last one, or became known.
    pub since: SystemTime,
}
