//! What is written on an HTTP/2 stream: cargo, FIN, the end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_lifecycle::cause::{End, Reason};
use tidegate_lifecycle::leg::Write;
use tidegate_lifecycle::relay::Rank;
use tidegate_lifecycle::{Capabilities, Capability};

use tidegate_transport::{
    Buffered, Ledger, Lost, Payload, Reason as Http2Reason, Respond, SendHalf,
};
use tidegate_wire::{metadata, status};

use crate::cargo::{Cargo, Writer as _};
use crate::end::{Opened, Read};
use crate::loss::{Seat, lost};

use super::RpcKind;

#[derive(Debug)]
pub(super) struct Outbound<I: Cargo> {
    seat: Seat,
    sink: Sink,
    queue: I::Writer,
    /// What is written when the queue is empty.
    commands: VecDeque<Write>,
    ledger: Arc<Ledger>,
    /// FIN or the end was said: what was said before it is worth waiting for.
    finishing: bool,
    taken: usize,
}

#[derive(Debug)]
enum Sink {
    /// No response was sent yet.
    Responding(Box<Responding>),
    Open(SendHalf),
    /// END_STREAM or trailers are queued; the half is kept to notice a reset.
    Ended(SendHalf),
    /// A status waits behind data that the peer does not take.
    Ending(SendHalf, Box<End>),
    /// A status was sent in the place of headers. The peer may go on sending until it has read it.
    Answered,
    /// Reset.
    Gone,
}

#[derive(Debug)]
struct Responding {
    respond: Respond,
    headers: HeaderMap,
    agreed: Capabilities,
}

impl<I: Cargo> Outbound<I> {
    pub(super) fn responding(
        kind: RpcKind,
        respond: Respond,
        agreed: Capabilities,
        total: &Arc<Buffered>,
    ) -> Self {
        let responding = Responding {
            respond,
            headers: HeaderMap::new(),
            agreed,
        };
        Self::new(kind, Sink::Responding(Box::new(responding)), total)
    }

    pub(super) fn requesting(kind: RpcKind, send: SendHalf, total: &Arc<Buffered>) -> Self {
        Self::new(kind, Sink::Open(send), total)
    }

    fn new(kind: RpcKind, sink: Sink, total: &Arc<Buffered>) -> Self {
        Self {
            seat: kind.seat(),
            sink,
            queue: I::writer(kind, total),
            commands: VecDeque::new(),
            ledger: Ledger::new(Arc::clone(total)),
            finishing: false,
            taken: 0,
        }
    }

    pub(super) fn set_header(&mut self, name: HeaderName, value: HeaderValue) {
        if let Sink::Responding(responding) = &mut self.sink {
            responding.headers.insert(name, value);
        }
    }

    /// Sends the response headers: the path is open.
    pub(super) fn respond(&mut self, opened: &Opened) {
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Responding(responding) => {
                let Responding {
                    respond,
                    mut headers,
                    agreed,
                } = *responding;
                let path = agreed.intersect(opened.path);
                metadata::set_capabilities(&mut headers, metadata::CAPABILITIES, agreed);
                metadata::set_capabilities(&mut headers, metadata::PATH_CAPABILITIES, path);
                if self.seat == Seat::OwnerToGateway && agreed.has(Capability::StreamHalfClose) {
                    metadata::set_peer_half_close(&mut headers);
                }
                if let Some(session) = &opened.session {
                    metadata::set_session_id(&mut headers, session);
                }
                if let Ok(send) = respond.headers(headers) {
                    self.sink = Sink::Open(send);
                }
            }
            other => self.sink = other,
        }
    }

    /// Sends a whole message outside of every queue: small, and before the peer granted anything.
    pub(super) fn message(&mut self, message: Bytes) {
        if let Sink::Open(send) = &mut self.sink {
            // A failure shows where the stream is read.
            let _ = send.send(Payload::new(vec![message], &self.ledger));
        }
    }

    pub(super) fn queue(&mut self, item: I) {
        self.finishing |= item.is_last();
        self.queue.push(item);
    }

    pub(super) fn command(&mut self, write: Write) {
        match write {
            Write::Status(end) => {
                self.abandon();
                self.refuse(end);
            }
            Write::Reset(end) => {
                self.abandon();
                self.reset(reset_code(end.reason));
            }
            // What waits to be written is no silence, and would only grow.
            Write::Keepalive if self.has_unwritten() => {}
            Write::FinFrame | Write::EndStream | Write::Ok | Write::Keepalive | Write::Close => {
                self.commands.push_back(write);
            }
        }
    }

    /// Ready when everything queued was handed over, and behind a FIN, when nothing of it waits in
    /// the library.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), (Rank, End)>> {
        match ready!(self.poll_data(cx)) {
            Ok(()) => {}
            // Its reader knows what the answer says.
            Err(loss) if self.seat.is_answered_before(loss) => return Poll::Pending,
            Err(loss) => return Poll::Ready(Err(lost(self.seat, loss))),
        }
        while let Some(write) = self.commands.pop_front() {
            self.finishing |= write != Write::Keepalive;
            self.write(write);
        }
        if self.finishing {
            ready!(self.ledger.poll_empty(cx));
        }
        if self.ledger.is_discarded() {
            // The library threw bytes away because the stream is gone: its reader is told why.
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }

    /// Watches a stream whose other direction has ended for a reset.
    pub(super) fn poll_lost(&mut self, cx: &mut Context<'_>) -> Poll<Read<I>> {
        let loss = match &mut self.sink {
            Sink::Open(send) | Sink::Ended(send) => ready!(send.poll_reset(cx)),
            Sink::Responding(responding) => ready!(responding.respond.poll_reset(cx)),
            Sink::Ending(..) | Sink::Answered | Sink::Gone => return Poll::Pending,
        };
        self.sink = Sink::Gone;
        let (rank, end) = lost(self.seat, loss);
        Poll::Ready(Read::Ended(rank, end))
    }

    /// After the end: ready when it was written, or cannot be any more.
    pub(super) fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.ledger.poll_empty(cx));
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Ending(mut send, end) => {
                let sent = send.send_trailers(status::trailers(&end)).is_ok();
                self.sink = if sent { Sink::Ended(send) } else { Sink::Gone };
            }
            other => self.sink = other,
        }
        Poll::Ready(())
    }

    pub(super) const fn is_reset(&self) -> bool {
        matches!(self.sink, Sink::Gone)
    }

    /// The status could not be written in time: the stream is reset.
    pub(super) fn cut(&mut self) {
        let code = match &self.sink {
            Sink::Ending(_, end) => reset_code(end.reason),
            Sink::Ended(_) if self.ledger.outstanding() == 0 => Http2Reason::NO_ERROR,
            Sink::Responding(_) | Sink::Open(_) | Sink::Ended(_) | Sink::Answered | Sink::Gone => {
                Http2Reason::CANCEL
            }
        };
        self.reset(code);
    }

    pub(super) const fn take_count(&mut self) -> usize {
        std::mem::replace(&mut self.taken, 0)
    }

    pub(super) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.sink {
            _ if !self.queue.is_empty() => Poll::Pending,
            Sink::Open(send) => send.poll_room(cx),
            Sink::Responding(_)
            | Sink::Ended(_)
            | Sink::Ending(..)
            | Sink::Answered
            | Sink::Gone => Poll::Ready(()),
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.weight()
    }

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        while !self.queue.is_empty() {
            let Sink::Open(send) = &mut self.sink else {
                return Poll::Pending;
            };
            ready!(send.poll_room(cx));
            let granted = ready!(send.poll_capacity(self.queue.wire_len(), cx))?;
            let (segments, taken) = self.queue.cut(granted);
            self.taken += taken;
            send.send(Payload::new(segments, &self.ledger))?;
        }
        Poll::Ready(Ok(()))
    }

    fn write(&mut self, write: Write) {
        match write {
            Write::FinFrame if self.commands.front() == Some(&Write::EndStream) => {
                self.commands.pop_front();
                let fin = Payload::new(vec![self.queue.fin()], &self.ledger);
                self.end_with(|send| send.finish_with(fin));
            }
            Write::FinFrame => self.message(self.queue.fin()),
            Write::Keepalive => self.message(self.queue.keepalive()),
            Write::EndStream => self.end_with(SendHalf::finish),
            Write::Ok => self.end_with(|send| send.send_trailers(status::ok())),
            Write::Close | Write::Status(_) | Write::Reset(_) => {}
        }
    }

    fn end_with(&mut self, end: impl FnOnce(&mut SendHalf) -> Result<(), Lost>) {
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Open(mut send) => {
                // A stream that is gone cannot be ended, and whoever reads it is told.
                let _ = end(&mut send);
                self.sink = Sink::Ended(send);
            }
            Sink::Responding(responding) => {
                self.answer(*responding, status::ok());
            }
            other => self.sink = other,
        }
    }

    fn refuse(&mut self, end: Box<End>) {
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Responding(responding) => self.answer(*responding, status::trailers(&end)),
            Sink::Open(send) => self.sink = Sink::Ending(send, end),
            other => self.sink = other,
        }
    }

    fn answer(&mut self, responding: Responding, status: HeaderMap) {
        // A peer that is gone needs no answer.
        if responding.respond.trailers_only(status).is_ok() {
            self.sink = Sink::Answered;
        }
    }

    fn reset(&mut self, code: Http2Reason) {
        match std::mem::replace(&mut self.sink, Sink::Gone) {
            Sink::Open(mut send) | Sink::Ended(mut send) | Sink::Ending(mut send, _) => {
                send.reset(code);
            }
            Sink::Responding(responding) => responding.respond.reset(code),
            // Behind a complete answer the library itself asks for silence, with NO_ERROR.
            Sink::Answered | Sink::Gone => {}
        }
    }

    fn has_unwritten(&self) -> bool {
        !self.queue.is_empty() || !self.commands.is_empty() || self.ledger.outstanding() > 0
    }

    fn abandon(&mut self) {
        self.queue.clear();
        self.commands.clear();
    }
}

const fn reset_code(reason: Reason) -> Http2Reason {
    if reason.is_violation() {
        Http2Reason::INTERNAL_ERROR
    } else {
        Http2Reason::CANCEL
    }
}
