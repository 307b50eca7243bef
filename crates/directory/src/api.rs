//! What a directory can be asked.

use std::time::SystemTime;

use async_trait::async_trait;
use thiserror::Error;
use tidegate_lifecycle::id::{GatewayId, Generation, InstanceId, SandboxName, SessionId};

use crate::Watch;

/// Knows sandboxes and their homes. Shared by all parts of a gateway, and by all gateways that name
/// the same one.
///
/// Every method is cancel-safe: a call that is dropped was made or was not.
#[async_trait]
pub trait Directory: Send + Sync + 'static {
    /// Records a session that a gateway has accepted. It is never refused: the newest wins.
    ///
    /// # Errors
    ///
    /// [`DirectoryError::Unavailable`] when the engine cannot be asked.
    async fn claim(&self, claim: Claim) -> Result<Claimed, DirectoryError>;

    /// Takes a session back, and says whether it was still recorded: `false` when a later claim had
    /// replaced it, which stays untouched.
    ///
    /// # Errors
    ///
    /// As [`Directory::claim`].
    async fn release(
        &self,
        sandbox: &SandboxName,
        generation: Generation,
    ) -> Result<bool, DirectoryError>;

    /// Lists the sessions that a sandbox has, the newest first.
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
}

/// Why a directory does not answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DirectoryError {
    /// The engine cannot be reached, or did not answer in time.
    #[error("the directory of sessions cannot be asked: {0}")]
    Unavailable(String),
}

/// A session, as the gateway that accepted it records it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which sandbox the session serves.
    pub sandbox: SandboxName,
    /// The session's name.
    pub session: SessionId,
    /// The supervisor process behind it; empty text from peers that do not say.
    pub instance: InstanceId,
    /// The gateway that holds it.
    pub gateway: GatewayId,
    /// Where other gateways reach that one.
    pub peer_url: Option<String>,
}

/// What a claim led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The session's fencing token, greater than every one before it.
    pub generation: Generation,
    /// The sessions that it took over from: their gateways must end them.
    pub replaced: Vec<Home>,
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
    /// Where other gateways reach it.
    pub peer_url: Option<String>,
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
    /// The sessions it has, the newest first.
    pub homes: Vec<Home>,
    /// Whether it ever had one.
    pub seen: bool,
    /// When it became known.
    pub created: SystemTime,
    /// When it got its present session, lost its last one, or became known.
    pub since: SystemTime,
}
