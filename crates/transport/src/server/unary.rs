//! Unary RPCs: one request of a connection as a call of a tonic service.

use std::sync::Arc;

use http::Request;
use http_body::Body as _;
use tonic::body::Body;
use tonic::service::Routes;
use tower_service::Service;

use super::{ConnectionInfo, ServerStream};
use crate::Lost;
use crate::stream::{Incoming, Upload};

/// Calls `routes` with a request and sends the answer.
///
/// # Errors
///
/// [`Lost`] when the client went away in the meantime.
pub(super) async fn call(mut routes: Routes, stream: ServerStream) -> Result<(), Lost> {
    let ServerStream {
        mut head,
        recv,
        mut respond,
        connection,
    } = stream;
    head.extensions.insert::<Arc<ConnectionInfo>>(connection);
    let request = Request::from_parts(head, Body::new(Incoming::new(recv)));
    let answer = tokio::select! {
        answer = routes.call(request) => answer,
        lost = respond.closed() => return Err(lost),
    };
    let (parts, body) = match answer {
        Ok(response) => response.into_parts(),
        Err(never) => match never {},
    };
    let head = http::Response::from_parts(parts, ());
    if body.is_end_stream() {
        return respond.finish(head);
    }
    let send = respond.begin(head)?;
    Upload::new(send, body).await
}
