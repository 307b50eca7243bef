//! What can be asked of a gateway beside streams.

use tidegate_lifecycle::cause::End;
use tidegate_lifecycle::id::{SandboxName, SessionId, StreamId};
use tidegate_transport::Connection;
use tidegate_wire::unary;

use crate::client::Client;
use crate::{Deletion, GatewayInfo, Health, Sandbox, Session, StreamInfo, User};

/// Each call asks the gateway that answered last, or the next one when it is gone; its error says
/// what failed and where.
impl Client {
    /// Whether the gateway is well, and its version.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn health(&self) -> Result<Health, End> {
        self.unary().await?.health().await
    }

    /// Which gateway answers.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn gateway_info(&self) -> Result<GatewayInfo, End> {
        self.unary().await?.gateway_info().await
    }

    /// Who the gateway takes the caller for.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn current_user(&self) -> Result<User, End> {
        self.unary().await?.current_user().await
    }

    /// One sandbox.
    ///
    /// # Errors
    ///
    /// [`Reason::SandboxNotFound`](crate::Reason) when nobody knows it.
    pub async fn sandbox(&self, name: &SandboxName) -> Result<Sandbox, End> {
        self.unary().await?.sandbox(name).await
    }

    /// All sandboxes that the gateway knows.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn sandboxes(&self) -> Result<Vec<Sandbox>, End> {
        self.unary().await?.sandboxes().await
    }

    /// Makes the gateway forget a sandbox: its session ends for good.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn delete_sandbox(&self, name: &SandboxName) -> Result<Deletion, End> {
        self.unary().await?.delete_sandbox(name).await
    }

    /// The supervisors' sessions, of one sandbox or of all.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn sessions(&self, sandbox: Option<&SandboxName>) -> Result<Vec<Session>, End> {
        self.unary().await?.sessions(sandbox).await
    }

    /// The streams that are open, of one sandbox or of all.
    ///
    /// # Errors
    ///
    /// As every call.
    pub async fn streams(&self, sandbox: Option<&SandboxName>) -> Result<Vec<StreamInfo>, End> {
        self.unary().await?.streams(sandbox).await
    }

    /// Ends one stream by hand.
    ///
    /// # Errors
    ///
    /// When there is none of that name.
    pub async fn close_stream(&self, id: &StreamId) -> Result<(), End> {
        self.unary().await?.close_stream(id).await
    }

    /// Kicks a sandbox's supervisor: it may come back.
    ///
    /// # Errors
    ///
    /// When it has no session.
    pub async fn close_session(&self, sandbox: &SandboxName) -> Result<Vec<SessionId>, End> {
        self.unary().await?.close_session(sandbox).await
    }

    async fn unary(&self) -> Result<unary::Client<Connection>, End> {
        let (connection, endpoint) = self.connection().await?;
        let client = unary::Client::new(connection);
        Ok(match self.token().filter(|_| endpoint.is_tls()) {
            Some(token) => client.with_token(token),
            None => client,
        })
    }
}
