//! One relay of a released supervisor.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::mpsc,
};
use tonic::{Status, Streaming, transport::Channel};

use crate::{
    legacy::rpc,
    messages::{
        FromSupervisor, HALF_CLOSE, RelayFrame, RelayInit, RelayOpen, RelayOpenResult,
        RelayPayload, SupervisorMessage, path,
    },
    outcome::Outcome,
};

/// The size of the pieces in which released supervisors send.
const PIECE: usize = 16 * 1024;

/// What every relay of a session shares.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) channel: Channel,
    pub(super) to_gateway: mpsc::Sender<SupervisorMessage>,
    pub(super) session: String,
    pub(super) token: Option<String>,
    /// Whether FIN frames are agreed on.
    pub(super) half_close: bool,
}

/// Dials the target, answers the gateway, and relays until both directions have ended.
pub(super) async fn serve(context: Context, open: RelayOpen) -> (String, Outcome) {
    let outcome = match relay(&context, &open).await {
        Ok(()) => Outcome::from(&Status::ok("")),
        Err(status) => Outcome::from(&status),
    };
    (open.channel_id, outcome)
}

async fn relay(context: &Context, open: &RelayOpen) -> Result<(), Status> {
    let dialled = dial(open).await;
    let error = dialled.as_ref().err().map(ToString::to_string);
    context.answer(open, error).await;
    let target = dialled.map_err(|error| Status::unavailable(error.to_string()))?;
    let (requests, queue) = mpsc::channel(rpc::QUEUE);
    requests
        .try_send(context.init(open))
        .expect("an empty queue has room");
    let token = context.token.as_deref();
    let opened = rpc::open(&context.channel, path::RELAY_STREAM, queue, token).await?;
    let (from_target, to_target) = target.into_split();
    let held = if context.half_close {
        None
    } else {
        Some(requests.clone())
    };
    tokio::try_join!(
        upload(from_target, requests),
        download(opened.into_inner(), to_target, context.half_close),
    )?;
    drop(held); // not before the response has ended: released supervisors know no other FIN
    Ok(())
}

async fn dial(open: &RelayOpen) -> std::io::Result<TcpStream> {
    let Some(tcp) = &open.tcp else {
        return Err(std::io::Error::other("this supervisor has no ssh"));
    };
    let port = u16::try_from(tcp.port).map_err(std::io::Error::other)?;
    let target = TcpStream::connect((tcp.host.as_str(), port)).await?;
    target.set_nodelay(true)?;
    Ok(target)
}

/// Target to gateway.
async fn upload(
    mut target: OwnedReadHalf,
    requests: mpsc::Sender<RelayFrame>,
) -> Result<(), Status> {
    loop {
        let mut piece = vec![0; PIECE];
        match target.read(&mut piece).await {
            Ok(0) => return Ok(()),
            Ok(read) => {
                piece.truncate(read);
                if requests.send(RelayFrame::data(piece)).await.is_err() {
                    return Ok(()); // the call is over, which the other direction tells
                }
            }
            Err(error) => return Err(Status::unavailable(error.to_string())),
        }
    }
}

/// Gateway to target.
async fn download(
    mut frames: Streaming<RelayFrame>,
    mut target: OwnedWriteHalf,
    half_close: bool,
) -> Result<(), Status> {
    while let Some(frame) = frames.message().await? {
        match frame.payload {
            Some(RelayPayload::Data(data)) => write(&mut target, &data).await?,
            Some(RelayPayload::HalfClose(_)) if half_close => finish(&mut target).await?,
            Some(RelayPayload::HalfClose(_) | RelayPayload::Init(_)) | None => {
                return Err(Status::internal("a frame without data"));
            }
        }
    }
    finish(&mut target).await
}

async fn write(target: &mut OwnedWriteHalf, data: &[u8]) -> Result<(), Status> {
    target
        .write_all(data)
        .await
        .map_err(|error| Status::unavailable(error.to_string()))
}

async fn finish(target: &mut OwnedWriteHalf) -> Result<(), Status> {
    target
        .shutdown()
        .await
        .map_err(|error| Status::unavailable(error.to_string()))
}

impl Context {
    fn init(&self, open: &RelayOpen) -> RelayFrame {
        let mut init = RelayInit {
            channel_id: open.channel_id.clone(),
            ..RelayInit::default()
        };
        if self.half_close {
            init.capabilities.push(HALF_CLOSE.to_owned());
            init.session_id.clone_from(&self.session);
        }
        RelayFrame::init(init)
    }

    async fn answer(&self, open: &RelayOpen, error: Option<String>) {
        let result = RelayOpenResult {
            channel_id: open.channel_id.clone(),
            success: error.is_none(),
            error: error.unwrap_or_default(),
            cause: None,
        };
        let message = FromSupervisor::RelayOpenResult(result).into();
        let _ = self.to_gateway.send(message).await; // without a session nobody waits for it
    }
}
