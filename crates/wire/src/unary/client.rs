//! Calls to a gateway's unary methods.

use bytes::Bytes;
use http::Uri;
use http::uri::PathAndQuery;
use tidegate_lifecycle::id::{SandboxName, SessionId, StreamId};
use tidegate_lifecycle::{End, Origin, Reason};
use tonic::Request;
use tonic::body::Body;
use tonic::client::{Grpc, GrpcService};
use tonic::codegen::{Body as HttpBody, StdError};
use tonic_prost::ProstCodec;

use super::page::Start;
use super::{
    Deletion, GatewayInfo, Health, ListSandboxesRequest, Sandbox, Session, SshSession, Stream, User,
};
use crate::decode::DecodeError;
use crate::proto::{openshell as proto, tidegate};
use crate::{metadata, status};

/// The largest answer: a page of the longest items.
const MAX_ANSWER: usize = 16 * 1024 * 1024;

/// Calls the unary methods of a gateway over a connection to it.
///
/// Every method fails with the end that the gateway reports, or with TRANSPORT_LOST when the call
/// itself failed. All are cancel-safe: a dropped call is cancelled.
#[derive(Clone, Debug)]
pub struct Client<T> {
    grpc: Grpc<T>,
    token: Option<Token>,
}

#[derive(Clone)]
struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

impl<T> Client<T>
where
    T: GrpcService<Body> + Clone,
    T::Error: Into<StdError>,
    T::ResponseBody: HttpBody<Data = Bytes> + Send + 'static,
    <T::ResponseBody as HttpBody>::Error: Into<StdError> + Send,
{
    /// A client over `connection`, which knows scheme and authority itself.
    pub fn new(connection: T) -> Self {
        Self {
            grpc: Grpc::new(connection).max_decoding_message_size(MAX_ANSWER),
            token: None,
        }
    }

    /// A client over `connection` whose requests name the scheme and authority of `uri`.
    pub fn with_uri(connection: T, uri: Uri) -> Self {
        let grpc = Grpc::with_origin(connection, uri).max_decoding_message_size(MAX_ANSWER);
        Self { grpc, token: None }
    }

    /// The same client with a bearer token.
    #[must_use]
    pub fn with_token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token(token.into()));
        self
    }

    /// Asks whether the gateway works.
    ///
    /// # Errors
    ///
    /// When the call fails.
    pub async fn health(&self) -> Result<Health, End> {
        let path = "/openshell.v1.OpenShell/Health";
        self.call::<_, proto::HealthResponse>(path, proto::HealthRequest {})
            .await
            .map(Into::into)
    }

    /// Asks what the gateway is.
    ///
    /// # Errors
    ///
    /// When the call fails.
    pub async fn gateway_info(&self) -> Result<GatewayInfo, End> {
        let path = "/openshell.v1.OpenShell/GetGatewayInfo";
        let request = proto::GetGatewayInfoRequest {};
        self.call::<_, proto::GetGatewayInfoResponse>(path, request)
            .await
            .map(Into::into)
    }

    /// Asks who we are.
    ///
    /// # Errors
    ///
    /// When the call fails.
    pub async fn current_user(&self) -> Result<User, End> {
        let path = "/openshell.v1.OpenShell/GetCurrentUser";
        let request = proto::GetCurrentUserRequest {};
        self.call::<_, proto::GetCurrentUserResponse>(path, request)
            .await
            .map(Into::into)
    }

    /// Looks a sandbox up.
    ///
    /// # Errors
    ///
    /// SANDBOX_NOT_FOUND when nobody knows it; else when the call fails.
    pub async fn sandbox(&self, name: &SandboxName) -> Result<Sandbox, End> {
        let path = "/openshell.v1.OpenShell/GetSandbox";
        let name = name.to_string();
        let request = proto::GetSandboxRequest {
            name,
            ..Default::default()
        };
        let response: proto::SandboxResponse = self.call(path, request).await?;
        read(response.sandbox.unwrap_or_default())
    }

    /// Lists every sandbox, page after page, ordered by name.
    ///
    /// # Errors
    ///
    /// When a call fails.
    pub async fn sandboxes(&self) -> Result<Vec<Sandbox>, End> {
        let path = "/openshell.v1.OpenShell/ListSandboxes";
        let mut all = Vec::new();
        let mut start = Start::First;
        loop {
            let request = ListSandboxesRequest {
                start,
                ..Default::default()
            };
            let page: proto::ListSandboxesResponse = self.call(path, request).await?;
            collect(&mut all, page.sandboxes)?;
            match page.next_page_token {
                token if token.is_empty() => return Ok(all),
                token => start = Start::After(token),
            }
        }
    }

    /// Makes the gateway forget a sandbox for good.
    ///
    /// # Errors
    ///
    /// When the call fails. A sandbox nobody knows is none.
    pub async fn delete_sandbox(&self, name: &SandboxName) -> Result<Deletion, End> {
        let path = "/openshell.v1.OpenShell/DeleteSandbox";
        let request = proto::DeleteSandboxRequest {
            name: name.to_string(),
            allow_missing: true,
            ..Default::default()
        };
        let response: proto::DeleteSandboxResponse = self.call(path, request).await?;
        Ok(Deletion::read(response.deleted, response.outcome()))
    }

    /// Asks for a token that authorises streams to a sandbox.
    ///
    /// # Errors
    ///
    /// When the call fails.
    pub async fn create_ssh_session(&self, sandbox: &SandboxName) -> Result<SshSession, End> {
        let path = "/openshell.v1.OpenShell/CreateSshSession";
        let sandbox = sandbox.to_string();
        let request = proto::CreateSshSessionRequest {
            sandbox,
            workspace_scope: None,
        };
        read(
            self.call::<_, proto::CreateSshSessionResponse>(path, request)
                .await?,
        )
    }

    /// Gives such a token back.
    ///
    /// # Errors
    ///
    /// When the call fails. A token nobody knows is none.
    pub async fn revoke_ssh_session(&self, token: &str) -> Result<Deletion, End> {
        let path = "/openshell.v1.OpenShell/RevokeSshSession";
        let token = token.to_owned();
        let request = proto::RevokeSshSessionRequest {
            token,
            allow_missing: true,
        };
        let response: proto::RevokeSshSessionResponse = self.call(path, request).await?;
        Ok(Deletion::read(response.revoked, response.outcome()))
    }

    /// Lists the sessions of one sandbox or of all, ordered by sandbox.
    ///
    /// # Errors
    ///
    /// When a call fails.
    pub async fn sessions(&self, sandbox: Option<&SandboxName>) -> Result<Vec<Session>, End> {
        let path = "/tidegate.v1.Operator/ListSessions";
        let sandbox = sandbox.map(ToString::to_string).unwrap_or_default();
        let mut request = tidegate::ListSessionsRequest {
            sandbox,
            ..Default::default()
        };
        let mut all = Vec::new();
        loop {
            let page: tidegate::ListSessionsResponse = self.call(path, request.clone()).await?;
            collect(&mut all, page.sessions)?;
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Lists the streams of one sandbox or of all, ordered by id.
    ///
    /// # Errors
    ///
    /// When a call fails.
    pub async fn streams(&self, sandbox: Option<&SandboxName>) -> Result<Vec<Stream>, End> {
        let path = "/tidegate.v1.Operator/ListStreams";
        let sandbox = sandbox.map(ToString::to_string).unwrap_or_default();
        let mut request = tidegate::ListStreamsRequest {
            sandbox,
            ..Default::default()
        };
        let mut all = Vec::new();
        loop {
            let page: tidegate::ListStreamsResponse = self.call(path, request.clone()).await?;
            collect(&mut all, page.streams)?;
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                return Ok(all);
            }
        }
    }

    /// Aborts a stream.
    ///
    /// # Errors
    ///
    /// When there is none of that id, or the call fails.
    pub async fn close_stream(&self, id: &StreamId) -> Result<(), End> {
        let path = "/tidegate.v1.Operator/CloseStream";
        let request = tidegate::CloseStreamRequest { id: id.to_string() };
        self.call::<_, tidegate::CloseStreamResponse>(path, request)
            .await
            .map(|_| ())
    }

    /// Ends the sessions of a sandbox, and says which.
    ///
    /// # Errors
    ///
    /// When there is none, or the call fails.
    pub async fn close_session(&self, sandbox: &SandboxName) -> Result<Vec<SessionId>, End> {
        let path = "/tidegate.v1.Operator/CloseSession";
        let request = tidegate::CloseSessionRequest {
            sandbox: sandbox.to_string(),
        };
        let response: tidegate::CloseSessionResponse = self.call(path, request).await?;
        Ok(response
            .session_ids
            .into_iter()
            .map(SessionId::new)
            .collect())
    }

    async fn call<Q, A>(&self, path: &'static str, message: Q) -> Result<A, End>
    where
        Q: prost::Message + Send + Sync + 'static,
        A: prost::Message + Default + Send + Sync + 'static,
    {
        let mut grpc = self.grpc.clone();
        grpc.ready().await.map_err(|error| lost(&*error.into()))?;
        let mut request = Request::new(message);
        if let Some(Token(token)) = &self.token {
            metadata::set_bearer(request.metadata_mut().as_mut(), token);
        }
        let path = PathAndQuery::from_static(path);
        let response = grpc
            .unary(request, path, ProstCodec::<Q, A>::default())
            .await;
        let answer = response.map_err(|status| status::from_tonic(&status, Origin::Gateway))?;
        Ok(answer.into_inner())
    }
}

fn lost(error: &dyn std::error::Error) -> End {
    End::new(Origin::Gateway, Reason::TransportLost, status::chain(error))
}

/// An answer that says nothing usable is the gateway's violation.
fn read<M, T: TryFrom<M, Error = DecodeError>>(message: M) -> Result<T, End> {
    T::try_from(message).map_err(|error| {
        let message = format!("the gateway's answer is unusable: {error}");
        End::new(Origin::Gateway, Reason::PeerViolation, message)
    })
}

fn collect<M, T: TryFrom<M, Error = DecodeError>>(
    all: &mut Vec<T>,
    page: Vec<M>,
) -> Result<(), End> {
    for message in page {
        all.push(read(message)?);
    }
    Ok(())
}
