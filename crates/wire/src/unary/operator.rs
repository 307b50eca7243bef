//! The generated service tidegate.v1.Operator, answered by a [`GatewayApi`].

use std::sync::Arc;

use tidegate_lifecycle::id::{SandboxName, SessionId, StreamId};
use tonic::{Request, Response, Status};

use super::open_shell::{answer, part, refuse};
use super::page::Start;
use super::translate::sandbox_name;
use super::{GatewayApi, Session, Stream, page};
use crate::decode::required;
use crate::proto::tidegate::{self as proto, operator_server::Operator};
use crate::status::to_tonic;

type Answer<T> = Result<Response<T>, Status>;

/// Answers the service's methods.
pub(super) struct Service<A: ?Sized>(pub(super) Arc<A>);

/// The sandbox that a list is narrowed to, if it is.
fn only(sandbox: String) -> Result<Option<SandboxName>, Status> {
    if sandbox.is_empty() {
        return Ok(None);
    }
    sandbox_name("sandbox", sandbox)
        .map(Some)
        .map_err(|error| refuse(&error))
}

#[tonic::async_trait]
impl<A: GatewayApi + ?Sized> Operator for Service<A> {
    async fn list_sessions(
        &self,
        request: Request<proto::ListSessionsRequest>,
    ) -> Answer<proto::ListSessionsResponse> {
        let (caller, request) = part(request);
        let only = only(request.sandbox)?;
        let all = self
            .0
            .sessions(&caller, only.as_ref())
            .await
            .map_err(|end| to_tonic(&end))?;
        let key = |session: &Session| format!("{}/{}", session.sandbox, session.session);
        let start = Start::of_token(request.page_token);
        let (page, next_page_token) = page::cut(all, key, start, request.page_size);
        let sessions = page.into_iter().map(Into::into).collect();
        Ok(Response::new(proto::ListSessionsResponse {
            sessions,
            next_page_token,
        }))
    }

    async fn list_streams(
        &self,
        request: Request<proto::ListStreamsRequest>,
    ) -> Answer<proto::ListStreamsResponse> {
        let (caller, request) = part(request);
        let only = only(request.sandbox)?;
        let all = self
            .0
            .streams(&caller, only.as_ref())
            .await
            .map_err(|end| to_tonic(&end))?;
        let key = |stream: &Stream| stream.id.to_string();
        let start = Start::of_token(request.page_token);
        let (page, next_page_token) = page::cut(all, key, start, request.page_size);
        let streams = page.into_iter().map(Into::into).collect();
        Ok(Response::new(proto::ListStreamsResponse {
            streams,
            next_page_token,
        }))
    }

    async fn close_stream(
        &self,
        request: Request<proto::CloseStreamRequest>,
    ) -> Answer<proto::CloseStreamResponse> {
        let (caller, request) = part(request);
        let id = required("id", request.id).map_err(|error| refuse(&error))?;
        answer(self.0.close_stream(&caller, &StreamId::new(id)).await)
    }

    async fn close_session(
        &self,
        request: Request<proto::CloseSessionRequest>,
    ) -> Answer<proto::CloseSessionResponse> {
        let (caller, request) = part(request);
        let sandbox = sandbox_name("sandbox", request.sandbox).map_err(|error| refuse(&error))?;
        answer(self.0.close_session(&caller, &sandbox).await)
    }
}

impl From<()> for proto::CloseStreamResponse {
    fn from((): ()) -> Self {
        Self {}
    }
}

impl From<Vec<SessionId>> for proto::CloseSessionResponse {
    fn from(sessions: Vec<SessionId>) -> Self {
        Self {
            session_ids: sessions.iter().map(ToString::to_string).collect(),
        }
    }
}
