//! What arrives on an HTTP/2 stream, as things a tunnel understands.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::HeaderMap;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::loss::Loss;
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::{Buffered, Received, RecvHalf, ResponseHead};
use tidegate_wire::frame::{FrameError, FrameLimit};
use tidegate_wire::{metadata, status};

use super::RpcKind;
use super::held::Held;
use crate::cargo::{Cargo, Reader as _};
use crate::end::{Opened, Read};
use crate::loss::{Seat, lost};
use crate::oversize::OversizeFrames;

/// Credit for framing is given back in pieces of at least this size, or with that for payload.
const FRAMING: usize = 16 * 1024;

#[derive(Debug)]
pub(super) struct Inbound<I: Cargo> {
    seat: Seat,
    source: Source,
    reader: I::Reader,
    /// What the session agreed on, where it did.
    agreed: Option<Capabilities>,
    /// Bytes pushed into the reader that have not come out of it as payload.
    unread: usize,
    /// Payload that has come out of it and whose credit is with the other side of the tunnel.
    passed: usize,
    /// Window that framing has used up and that is to be given back.
    framing: usize,
    /// Credit given for bytes that nobody has taken, so that the message they belong to can become
    /// whole. At most one message's, because the next one is lent only what was paid back.
    lent: usize,
    /// What is here of a message that is not whole.
    held: Held,
    /// Where frames above the limit of those who promise one are counted.
    oversize: Option<OversizeFrames>,
}

#[derive(Debug)]
enum Source {
    /// The response headers are awaited.
    Head(Box<ResponseHead>),
    Open(RecvHalf),
    /// Nothing behind a broken frame can be told apart: the rest is thrown away.
    Broken(RecvHalf),
    Ended,
}

impl<I: Cargo> Inbound<I> {
    pub(super) fn request(
        seat: Seat,
        recv: RecvHalf,
        mut reader: I::Reader,
        limit: FrameLimit,
        total: &Arc<Buffered>,
    ) -> Self {
        reader.set_limit(limit);
        Self {
            seat,
            source: Source::Open(recv),
            agreed: None,
            unread: reader.buffered(),
            reader,
            passed: 0,
            framing: 0,
            lent: 0,
            held: Held::none(total),
            oversize: None,
        }
    }

    pub(super) fn response(
        kind: RpcKind,
        head: ResponseHead,
        agreed: Option<Capabilities>,
        total: &Arc<Buffered>,
    ) -> Self {
        let reader = I::reader(kind, FrameLimit::of(agreed.unwrap_or_default()));
        Self {
            seat: kind.seat(),
            source: Source::Head(Box::new(head)),
            reader,
            agreed,
            unread: 0,
            passed: 0,
            framing: 0,
            lent: 0,
            held: Held::none(total),
            oversize: None,
        }
    }

    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.source, Source::Ended)
    }

    pub(super) fn count_oversize(&mut self, count: &OversizeFrames) {
        self.oversize = Some(count.clone());
    }

    pub(super) fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Read<I>> {
        loop {
            match self.reader.next() {
                Ok(Some(read)) => return Poll::Ready(self.read(read)),
                Ok(None) => {
                    self.count_frames();
                    self.settle_framing();
                    self.lend();
                }
                Err(error) => return Poll::Ready(self.broken(error)),
            }
            let received = match &mut self.source {
                Source::Head(head) => {
                    let head = ready!(Pin::new(&mut **head).poll(cx));
                    return Poll::Ready(self.read_head(head));
                }
                Source::Open(recv) => ready!(recv.poll_recv(cx)),
                Source::Broken(_) => {
                    ready!(self.poll_discard(cx));
                    return Poll::Pending;
                }
                Source::Ended => return Poll::Pending,
            };
            match received {
                Received::Data(data) => {
                    self.unread += data.len();
                    self.reader.push(data);
                }
                Received::End => return Poll::Ready(self.end_stream()),
                Received::Trailers(trailers) => return Poll::Ready(self.trailers(&trailers)),
                Received::Lost(loss) => {
                    self.source = Source::Ended;
                    let (rank, end) = lost(self.seat, loss);
                    return Poll::Ready(Read::Ended(rank, end));
                }
            }
        }
    }

    /// The other side of the tunnel has taken `bytes`.
    pub(super) fn credit(&mut self, bytes: usize) {
        let payload = bytes.min(self.passed);
        self.passed -= payload;
        let bytes = self.repay(payload) + std::mem::take(&mut self.framing);
        self.release(bytes);
    }

    /// Throws away what still arrives; ready when the direction has ended.
    pub(super) fn poll_discard(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match &mut self.source {
                Source::Ended => return Poll::Ready(()),
                Source::Head(head) => match ready!(Pin::new(&mut **head).poll(cx)) {
                    Ok((_, recv)) => self.source = Source::Open(recv),
                    Err(_) => self.source = Source::Ended,
                },
                Source::Open(recv) | Source::Broken(recv) => match ready!(recv.poll_recv(cx)) {
                    Received::Data(data) => recv.release(data.len()),
                    Received::End | Received::Trailers(_) | Received::Lost(_) => {
                        self.source = Source::Ended
                    }
                },
            }
        }
    }

    fn read(&mut self, read: Read<I>) -> Read<I> {
        if let Read::Data(item) = &read {
            self.held.set(0);
            // What was said before this stream was read here holds none of its window.
            let held = item.weight().min(self.unread);
            self.unread -= held;
            self.passed += held;
        }
        read
    }

    fn read_head(
        &mut self,
        head: Result<(http::response::Parts, RecvHalf), tidegate_transport::Lost>,
    ) -> Read<I> {
        let (parts, recv) = match head {
            Ok(head) => head,
            Err(loss) => {
                self.source = Source::Ended;
                let (rank, end) = lost(self.seat, loss);
                return Read::Ended(rank, end);
            }
        };
        self.source = Source::Open(recv);
        if let Some(end) = refusal(&parts, self.seat.neighbour()) {
            self.source = Source::Ended;
            return Read::Ended(Rank::Typed, end);
        }
        let agreed = self.agreed.unwrap_or_else(|| {
            let offered = if self.seat == Seat::GatewayToOwner {
                metadata::peer_capabilities(&parts.headers)
            } else {
                metadata::capabilities(&parts.headers, &metadata::CAPABILITIES)
            };
            I::OFFERED.intersect(offered)
        });
        self.reader.set_limit(FrameLimit::of(agreed));
        let path = metadata::capabilities(&parts.headers, &metadata::PATH_CAPABILITIES);
        Read::Opened(Opened {
            half_close: agreed.half_close(),
            path,
            stream: metadata::stream_id(&parts.headers),
            session: metadata::session_id(&parts.headers),
            by_owner: self.seat == Seat::GatewayToOwner,
        })
    }

    fn end_stream(&mut self) -> Read<I> {
        let complete = self.reader.is_at_boundary();
        self.source = Source::Ended;
        match (self.seat.asks(), complete) {
            (false, true) => Read::End,
            (false, false) => self.truncated("the stream ended inside a frame"),
            (true, _) => self.truncated("the stream ended without a status"),
        }
    }

    fn trailers(&mut self, trailers: &HeaderMap) -> Read<I> {
        let complete = self.reader.is_at_boundary();
        self.source = Source::Ended;
        if !self.seat.asks() {
            return Read::End;
        }
        match status::parse(trailers, self.seat.neighbour()) {
            Ok(()) if complete => Read::End,
            Ok(()) => self.truncated("the stream ended inside a frame"),
            Err(end) => Read::Ended(Rank::Typed, end),
        }
    }

    fn truncated(&self, what: &str) -> Read<I> {
        let who = self.seat.neighbour();
        let message = format!("the {who} broke the stream off: {what}");
        let reason = Loss::Broken.reason(self.seat.link(), false);
        Read::Ended(Rank::Transport, End::new(who, reason, message))
    }

    fn broken(&mut self, error: FrameError) -> Read<I> {
        let reason = match error {
            FrameError::TooLarge { .. } => Reason::FrameTooLarge,
            FrameError::Compressed | FrameError::Malformed => Reason::ProtocolViolation,
        };
        self.reader.forget();
        self.held.set(0);
        if let Source::Open(recv) = std::mem::replace(&mut self.source, Source::Ended) {
            self.source = Source::Broken(recv);
        }
        Read::Violation(reason, error.to_string())
    }

    fn count_frames(&mut self) {
        let frames = self.reader.take_oversize();
        if frames > 0
            && let Some(count) = &self.oversize
        {
            count.add(frames);
        }
    }

    /// Everything that is payload has come out of the reader: what else it was given is framing,
    /// but for the part of a message that is still incomplete.
    fn settle_framing(&mut self) {
        let incomplete = self.reader.buffered();
        let framing = self.unread.saturating_sub(incomplete);
        self.framing += self.repay(framing);
        self.unread = incomplete;
        if self.framing > FRAMING && !I::WAITS_WITHOUT_PAYLOAD {
            let bytes = std::mem::take(&mut self.framing);
            self.release(bytes);
        }
    }

    /// A message that must be whole may be larger than the window: gives credit for what is here of
    /// it, as far as what was lent before was paid back.
    fn lend(&mut self) {
        let gathered = self.reader.gathered();
        self.held.set(gathered);
        if gathered > self.lent {
            let bytes = gathered - self.lent;
            self.lent = gathered;
            self.release(bytes);
        }
    }

    /// Counts `bytes` for which credit is due against what was lent, and returns the rest.
    fn repay(&mut self, bytes: usize) -> usize {
        let paid = bytes.min(self.lent);
        self.lent -= paid;
        bytes - paid
    }

    fn release(&mut self, bytes: usize) {
        if let Source::Open(recv) = &mut self.source
            && bytes > 0
        {
            recv.release(bytes);
        }
    }
}

/// A response that opens nothing: an HTTP error, or a status in the place of headers.
fn refusal(parts: &http::response::Parts, origin: Origin) -> Option<End> {
    if parts.status != http::StatusCode::OK {
        return Some(status::from_http(parts.status, origin));
    }
    if parts.headers.contains_key("grpc-status") {
        return status::parse(&parts.headers, origin).err();
    }
    None
}
