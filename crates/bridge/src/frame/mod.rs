//! The end that speaks gRPC frames over an HTTP/2 stream.
//!
//! Frames are taken out of the HTTP/2 library as soon as they arrive, because it counts small ones
//! that wait as a flood. The peer gets its credit back only when the other side of the tunnel has
//! taken the bytes, so what can wait here is what the stream's window has granted. A message that
//! must be whole before it can be passed on is the exception: its sender is lent credit for it, for
//! one message at a time, and what is held of it counts in the process's sum.

mod bytes;
mod held;
mod inbound;
mod outbound;

use std::sync::Arc;
use std::task::{Context, Poll};

use ::bytes::Bytes;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::End as StreamEnd;
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::{Buffered, RecvHalf, Respond, ResponseHead, SendHalf};
use tidegate_wire::frame::FrameLimit;

use self::inbound::Inbound;
use self::outbound::Outbound;
use crate::cargo::Cargo;
use crate::end::{End, Opened, Read};
use crate::loss::Seat;
use crate::oversize::OversizeFrames;

/// Which RPC a frame stream is, and from where it is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RpcKind {
    /// ForwardTcp, at the gateway that serves it.
    ForwardServer,
    /// ForwardTcp, at the client that opened it.
    ForwardClient,
    /// RelayStream, at the gateway that serves it.
    RelayServer {
        /// Whether its session agreed on heartbeats.
        liveness: bool,
    },
    /// RelayStream, at the supervisor that opened it.
    RelayClient {
        /// Whether its session agreed on heartbeats.
        liveness: bool,
    },
    /// ExecSandbox or ExecSandboxInteractive, at the gateway that serves it.
    ExecServer,
    /// ExecSandboxInteractive, at the client that opened it.
    ExecClient,
    /// PeerRelay, at the owner that serves it.
    PeerServer,
    /// PeerRelay, at the gateway that opened it.
    PeerClient,
}

impl RpcKind {
    pub(crate) const fn seat(self) -> Seat {
        match self {
            Self::ForwardServer | Self::ExecServer => Seat::GatewayToClient,
            Self::ForwardClient | Self::ExecClient => Seat::ClientToGateway,
            Self::PeerServer => Seat::OwnerToGateway,
            Self::PeerClient => Seat::GatewayToOwner,
            Self::RelayServer { liveness } => Seat::GatewayToSupervisor { liveness },
            Self::RelayClient { liveness } => Seat::SupervisorToGateway { liveness },
        }
    }
}

/// One RPC as an end of a tunnel.
#[derive(Debug)]
pub struct RpcEnd<I: Cargo> {
    inbound: Inbound<I>,
    outbound: Outbound<I>,
}

/// An RPC that carries bytes.
pub type FrameEnd = RpcEnd<Bytes>;

impl<I: Cargo> RpcEnd<I> {
    /// The server's side of an RPC whose init was read from `recv`; `reader` holds what came behind
    /// it. The response headers are sent when the path is open.
    pub fn accepted(
        kind: RpcKind,
        respond: Respond,
        recv: RecvHalf,
        reader: I::Reader,
        agreed: Capabilities,
        total: &Arc<Buffered>,
    ) -> Self {
        let inbound = Inbound::request(kind.seat(), recv, reader, FrameLimit::of(agreed), total);
        Self {
            inbound,
            outbound: Outbound::responding(kind, respond, agreed, total),
        }
    }

    /// The client's side of an RPC whose init is queued by this call.
    ///
    /// What was agreed is read from the response headers and reported as [`Read::Opened`]; where a
    /// session agreed before, `agreed` says so and headers are only waited for.
    pub fn opened(
        kind: RpcKind,
        send: SendHalf,
        head: ResponseHead,
        init: Bytes,
        agreed: Option<Capabilities>,
        total: &Arc<Buffered>,
    ) -> Self {
        let inbound = Inbound::response(kind, head, agreed, total);
        let mut outbound = Outbound::requesting(kind, send, total);
        if !init.is_empty() {
            outbound.message(init);
        }
        Self { inbound, outbound }
    }

    /// Adds a header to the response, which is sent when the path is open. Without effect on the
    /// client's side.
    pub fn set_header(&mut self, name: http::HeaderName, value: http::HeaderValue) {
        self.outbound.set_header(name, value);
    }

    /// Adds the frames to `count` that are larger than those of a neighbour which promised a limit,
    /// as they come.
    pub fn count_oversize(&mut self, count: &OversizeFrames) {
        self.inbound.count_oversize(count);
    }
}

impl<I: Cargo> End for RpcEnd<I> {
    type Item = I;

    fn poll_read(&mut self, _room: bool, cx: &mut Context<'_>) -> Poll<Read<I>> {
        match self.inbound.poll_read(cx) {
            Poll::Ready(read) => Poll::Ready(read),
            Poll::Pending if self.inbound.has_ended() => self.outbound.poll_lost(cx),
            Poll::Pending => Poll::Pending,
        }
    }

    fn queue(&mut self, item: I) {
        self.outbound.queue(item);
    }

    fn command(&mut self, write: Write) {
        self.outbound.command(write);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), (Rank, StreamEnd)>> {
        self.outbound.poll_flush(cx)
    }

    fn taken(&mut self) -> usize {
        self.outbound.take_count()
    }

    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.outbound.poll_room(cx)
    }

    fn waiting(&self) -> usize {
        self.outbound.waiting()
    }

    fn reads_ahead(&self) -> bool {
        true
    }

    fn credit(&mut self, bytes: usize) {
        self.inbound.credit(bytes);
    }

    fn path_opened(&mut self, opened: &Opened) {
        self.outbound.respond(opened);
    }

    fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let written = self.outbound.poll_written(cx).is_ready();
        let heard = self.inbound.poll_discard(cx).is_ready();
        if written && (heard || self.outbound.is_reset()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    fn cut(&mut self) {
        self.outbound.cut();
    }
}
