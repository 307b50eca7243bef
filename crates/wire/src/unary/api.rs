//! What a gateway must be able to do.

use tidegate_lifecycle::End;
use tidegate_lifecycle::id::{SandboxName, SessionId, StreamId};

use super::{Caller, Deletion, GatewayInfo, Health, Sandbox, Session, SshSession, Stream, User};

/// The unary methods of a gateway. An `Err` becomes the call's status, reason included.
///
/// Implementations must be cancel-safe: a call whose caller went away is dropped.
#[tonic::async_trait]
pub trait GatewayApi: Send + Sync + 'static {
    /// Says whether the gateway works. Asked without credentials.
    async fn health(&self) -> Health;

    /// Says what the gateway is.
    async fn gateway_info(&self, caller: &Caller) -> Result<GatewayInfo, End>;

    /// Says who the caller is.
    async fn current_user(&self, caller: &Caller) -> Result<User, End>;

    /// Looks a sandbox up; SANDBOX_NOT_FOUND if nobody knows it.
    async fn sandbox(&self, caller: &Caller, name: &SandboxName) -> Result<Sandbox, End>;

    /// Lists every known sandbox that the caller may see, in any order.
    async fn sandboxes(&self, caller: &Caller) -> Result<Vec<Sandbox>, End>;

    /// Forgets a sandbox for good and ends its sessions.
    async fn delete_sandbox(&self, caller: &Caller, name: &SandboxName) -> Result<Deletion, End>;

    /// Issues a token that authorises streams to a sandbox.
    async fn create_ssh_session(
        &self,
        caller: &Caller,
        sandbox: &SandboxName,
    ) -> Result<SshSession, End>;

    /// Takes such a token back.
    async fn revoke_ssh_session(&self, caller: &Caller, token: &str) -> Result<Deletion, End>;

    /// Lists the sessions of one sandbox or of all, in any order.
    async fn sessions(
        &self,
        caller: &Caller,
        sandbox: Option<&SandboxName>,
    ) -> Result<Vec<Session>, End>;

    /// Lists the streams of one sandbox or of all, in any order.
    async fn streams(
        &self,
        caller: &Caller,
        sandbox: Option<&SandboxName>,
    ) -> Result<Vec<Stream>, End>;

    /// Aborts a stream with OPERATOR_CLOSED.
    async fn close_stream(&self, caller: &Caller, id: &StreamId) -> Result<(), End>;

    /// Ends the sessions of a sandbox with OPERATOR_CLOSED, and says which.
    async fn close_session(
        &self,
        caller: &Caller,
        sandbox: &SandboxName,
    ) -> Result<Vec<SessionId>, End>;
}
