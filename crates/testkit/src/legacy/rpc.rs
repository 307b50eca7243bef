//! Streaming calls over tonic without generated code.

use std::{net::SocketAddr, str::FromStr};

use futures_util::{Stream, stream};
use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::mpsc;
use tonic::{
    Request, Response, Status, Streaming,
    client::Grpc,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

/// How many messages wait to be sent.
pub(super) const QUEUE: usize = 16;

/// Connects as a released client does, at once.
pub(super) async fn connect(address: SocketAddr) -> Result<Channel, tonic::transport::Error> {
    Endpoint::from_shared(format!("http://{address}"))?
        .tcp_nodelay(true)
        .connect()
        .await
}

/// Opens a bidirectional call whose requests come from `requests`; dropping the queue's other end
/// ends the request stream.
pub(super) async fn open<M, R>(
    channel: &Channel,
    path: &'static str,
    requests: mpsc::Receiver<M>,
    token: Option<&str>,
) -> Result<Response<Streaming<R>>, Status>
where
    M: Message + Send + Sync + 'static,
    R: Message + Default + Send + Sync + 'static,
{
    let mut grpc = ready(channel).await?;
    let request = authorized(queued(requests), token)?;
    grpc.streaming(
        request,
        PathAndQuery::from_static(path),
        ProstCodec::<M, R>::default(),
    )
    .await
}

/// Makes a unary call.
pub(super) async fn unary<M, R>(
    channel: &Channel,
    path: &'static str,
    message: M,
    token: Option<&str>,
) -> Result<R, Status>
where
    M: Message + Send + Sync + 'static,
    R: Message + Default + Send + Sync + 'static,
{
    let mut grpc = ready(channel).await?;
    let request = authorized(message, token)?;
    let codec = ProstCodec::<M, R>::default();
    let answer = grpc
        .unary(request, PathAndQuery::from_static(path), codec)
        .await?;
    Ok(answer.into_inner())
}

/// Turns a queue into a stream that ends with it.
pub(super) fn queued<T>(queue: mpsc::Receiver<T>) -> impl Stream<Item = T> {
    stream::unfold(queue, async |mut queue| {
        queue.recv().await.map(|item| (item, queue))
    })
}

async fn ready(channel: &Channel) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready()
        .await
        .map_err(|error| Status::from_error(error.into()))?;
    Ok(grpc)
}

fn authorized<T>(message: T, token: Option<&str>) -> Result<Request<T>, Status> {
    let mut request = Request::new(message);
    if let Some(token) = token {
        let bearer = tonic::metadata::MetadataValue::from_str(&format!("Bearer {token}"));
        let bearer = bearer.map_err(|_| Status::invalid_argument("the token is no ASCII text"))?;
        request.metadata_mut().insert("authorization", bearer);
    }
    Ok(request)
}
