//! The generated service openshell.v1.OpenShell, answered by a [`GatewayApi`].

use std::sync::Arc;

use tidegate_lifecycle::id::SandboxName;
use tidegate_lifecycle::{End, Origin, Reason};
use tonic::{Request, Response, Status};

use super::translate::sandbox_name;
use super::{Caller, Deletion, GatewayApi, ListSandboxesRequest, Sandbox, page};
use crate::decode::DecodeError;
use crate::proto::openshell::{self as proto, open_shell_server::OpenShell};
use crate::status::to_tonic;

type Answer<T> = Result<Response<T>, Status>;

/// Answers the service's unary methods.
pub(super) struct Service<A: ?Sized>(pub(super) Arc<A>);

/// Parts a request into who asks and what is asked.
pub(super) fn part<T>(request: Request<T>) -> (Caller, T) {
    let (metadata, extensions, message) = request.into_parts();
    (Caller::new(metadata.as_ref(), extensions), message)
}

/// The answer, or the status that says why there is none.
pub(super) fn answer<T, M: From<T>>(result: Result<T, End>) -> Answer<M> {
    result
        .map(|plain| Response::new(plain.into()))
        .map_err(|end| to_tonic(&end))
}

/// The status of a request that names no sandbox, or something else that is none.
pub(super) fn refuse(error: &DecodeError) -> Status {
    to_tonic(&End::new(
        Origin::Client,
        Reason::InvalidRequest,
        error.to_string(),
    ))
}

fn named(field: &'static str, text: String) -> Result<SandboxName, Status> {
    sandbox_name(field, text).map_err(|error| refuse(&error))
}

#[tonic::async_trait]
impl<A: GatewayApi + ?Sized> OpenShell for Service<A> {
    async fn health(&self, _: Request<proto::HealthRequest>) -> Answer<proto::HealthResponse> {
        Ok(Response::new(self.0.health().await.into()))
    }

    async fn get_gateway_info(
        &self,
        request: Request<proto::GetGatewayInfoRequest>,
    ) -> Answer<proto::GetGatewayInfoResponse> {
        let (caller, _) = part(request);
        answer(self.0.gateway_info(&caller).await)
    }

    async fn get_current_user(
        &self,
        request: Request<proto::GetCurrentUserRequest>,
    ) -> Answer<proto::GetCurrentUserResponse> {
        let (caller, _) = part(request);
        answer(self.0.current_user(&caller).await)
    }

    async fn get_sandbox(
        &self,
        request: Request<proto::GetSandboxRequest>,
    ) -> Answer<proto::SandboxResponse> {
        let (caller, request) = part(request);
        let name = named("name", request.name)?;
        answer(self.0.sandbox(&caller, &name).await)
    }

    async fn list_sandboxes(
        &self,
        request: Request<ListSandboxesRequest>,
    ) -> Answer<proto::ListSandboxesResponse> {
        let (caller, request) = part(request);
        let mut all = self
            .0
            .sandboxes(&caller)
            .await
            .map_err(|end| to_tonic(&end))?;
        if !request.label_selector.is_empty() {
            all.clear(); // sandboxes have no labels, so none has the one asked for
        }
        let key = |sandbox: &Sandbox| sandbox.name.to_string();
        let (page, next_page_token) = page::cut(all, key, request.start, request.page_size);
        let sandboxes = page.into_iter().map(Into::into).collect();
        Ok(Response::new(proto::ListSandboxesResponse {
            sandboxes,
            next_page_token,
        }))
    }

    async fn delete_sandbox(
        &self,
        request: Request<proto::DeleteSandboxRequest>,
    ) -> Answer<proto::DeleteSandboxResponse> {
        let (caller, request) = part(request);
        let name = named("name", request.name)?;
        match self.0.delete_sandbox(&caller, &name).await {
            Ok(Deletion::AlreadyAbsent) if !request.allow_missing => {
                let message = format!("nobody knows a sandbox named {name}");
                let end = End::new(Origin::Gateway, Reason::SandboxNotFound, message);
                Err(to_tonic(&end))
            }
            Ok(deletion) => {
                let (deleted, outcome) = deletion.outcome();
                let sandbox_id = name.to_string();
                Ok(Response::new(proto::DeleteSandboxResponse {
                    deleted,
                    outcome,
                    sandbox_id,
                }))
            }
            Err(end) => Err(to_tonic(&end)),
        }
    }

    async fn create_ssh_session(
        &self,
        request: Request<proto::CreateSshSessionRequest>,
    ) -> Answer<proto::CreateSshSessionResponse> {
        let (caller, request) = part(request);
        let name = named("sandbox", request.sandbox)?;
        answer(self.0.create_ssh_session(&caller, &name).await)
    }

    async fn revoke_ssh_session(
        &self,
        request: Request<proto::RevokeSshSessionRequest>,
    ) -> Answer<proto::RevokeSshSessionResponse> {
        let (caller, request) = part(request);
        answer(self.0.revoke_ssh_session(&caller, &request.token).await)
    }
}

impl From<Sandbox> for proto::SandboxResponse {
    fn from(sandbox: Sandbox) -> Self {
        Self {
            sandbox: Some(sandbox.into()),
        }
    }
}

impl From<Deletion> for proto::RevokeSshSessionResponse {
    fn from(deletion: Deletion) -> Self {
        let (revoked, outcome) = deletion.outcome();
        Self { revoked, outcome }
    }
}
