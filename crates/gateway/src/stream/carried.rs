//! What streams of every kind have in common: how one is taken in, and how it ends.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use tidegate_bridge::{Awaited, Cargo, Handle, Machine, Outcome, RpcEnd, Tunnel};
use tidegate_lifecycle::{Capabilities, End, Reason};
use tidegate_transport::{RecvHalf, Respond};
use tidegate_wire::{DecodeError, metadata};
use tokio::time::timeout_at;

use super::opening::{Freight, Opening, Way};
use super::registry::{PendingGuard, StreamGuard};
use super::{Kind, Subject};
use crate::first::{self, Beginning, NoFirst};
use crate::session::Leash;
use crate::state::State;
use crate::waiting::Call;

/// Reads the first message of a client's call before the call's own deadline.
///
/// # Errors
///
/// As [`first::read`], and when too many calls are silent.
pub(super) async fn hear<R: Beginning, T>(
    state: &State,
    call: Call,
    recv: &mut RecvHalf,
    deadline: Option<Instant>,
    (reader, parse): (R, impl FnOnce(&Bytes) -> Result<T, DecodeError>),
) -> Result<(T, R), NoFirst> {
    let Some(_silent) = state.waiting.enter(call) else {
        let message = "too many calls wait for their first message";
        let end = state.end(Reason::LimitStreams, message);
        return Err(NoFirst::Refuse(end));
    };
    let first = first::read(state, call.caller(), recv, reader, parse);
    match deadline {
        None => first.await,
        Some(at) => timeout_at(at.into(), first)
            .await
            .unwrap_or_else(|_| Err(NoFirst::Refuse(overdue(state)))),
    }
}

/// Answers a call that becomes no stream.
pub(super) async fn refuse(
    state: &State,
    kind: Kind,
    none: NoFirst,
    respond: Respond,
    recv: RecvHalf,
) {
    state.metrics.never_opened(kind);
    match none {
        NoFirst::Refuse(end) => {
            let end = end.via(&state.hop);
            state.metrics.ended(kind, end.cause());
            tracing::debug!(reason = %end.reason, why = end.message, "a stream was refused");
            first::refuse(respond, recv, &end).await;
        }
        NoFirst::Gone(end) => state.metrics.ended(kind, end.cause()),
    }
}

/// The end of the whole operation, where its caller set one.
pub(super) fn deadline(headers: &HeaderMap, arrived: Instant) -> Option<Instant> {
    arrived.checked_add(metadata::timeout(headers)?)
}

/// Why a stream ends whose first message did not come before that.
fn overdue(state: &State) -> End {
    let message = "the call's own deadline passed before its first message";
    state.end(Reason::OperationTimeout, message)
}

/// A stream that was taken in.
pub(super) struct Admitted {
    /// What its caller understands.
    pub(super) capabilities: Capabilities,
    pub(super) handle: Handle,
    subject: Subject,
    guard: StreamGuard,
    place: PendingGuard,
    leash: Leash,
}

impl Admitted {
    /// Takes a stream in, or says which limit it would break.
    ///
    /// # Errors
    ///
    /// As [`Streams::admit`](super::Streams::admit).
    pub(super) fn new(
        state: &State,
        subject: Subject,
        capabilities: Capabilities,
    ) -> Result<Self, End> {
        let (handle, leash) = (Handle::new(Instant::now()), Leash::default());
        let (guard, place) = state
            .streams
            .admit(subject.clone(), handle.clone(), leash.clone())?;
        Ok(Self {
            capabilities,
            handle,
            subject,
            guard,
            place,
            leash,
        })
    }

    /// Joins the caller's call and the path that is to be opened for it in this way, on the thread
    /// `lane`.
    pub(super) fn join<I: Freight, M: Machine<Item = I>>(
        self,
        state: Arc<State>,
        mut downstream: RpcEnd<I>,
        machine: M,
        (lane, way): (usize, Way),
    ) -> Carried<I, M> {
        let Self {
            handle,
            subject,
            guard,
            place,
            leash,
            ..
        } = self;
        let opening = Opening {
            state: Arc::clone(&state),
            subject,
            handle: handle.clone(),
            lane,
            way,
            leash: leash.clone(),
            place,
        };
        downstream.count_oversize(&state.metrics.oversize);
        // What a client is told is its own gateway's name for the stream.
        if guard.is_a_clients()
            && let Ok(id) = HeaderValue::from_str(guard.id().as_str())
        {
            downstream.set_header(metadata::STREAM_ID, id);
        }
        let upstream = Awaited::new(Box::pin(opening.run()), &state.buffered);
        let tunnel = Tunnel::new(downstream, upstream, machine, handle, Instant::now());
        Carried {
            state,
            guard,
            leash,
            tunnel,
        }
    }
}

/// A stream on its way.
pub(super) struct Carried<I: Cargo, M> {
    state: Arc<State>,
    guard: StreamGuard,
    leash: Leash,
    pub(super) tunnel: Tunnel<RpcEnd<I>, Awaited<I>, M>,
}

impl<I: Cargo, M: Machine<Item = I>> Carried<I, M> {
    /// Tells those who do not know it that the stream has ended, and lets it go.
    pub(super) async fn conclude(self, outcome: Outcome) {
        let Self {
            state,
            guard,
            leash,
            tunnel,
        } = self;
        log(&guard, &outcome);
        guard.finish(&outcome);
        leash.let_go(&outcome, &state.hop);
        tunnel.linger().await;
    }
}

fn log(guard: &StreamGuard, outcome: &Outcome) {
    tracing::debug!(
        stream = %guard.id(),
        reason = outcome.cause().reason_word(),
        origin = outcome.end.as_ref().map(|end| end.origin.as_str()),
        why = outcome.end.as_ref().map(|end| end.message.as_str()),
        up = outcome.bytes_up,
        down = outcome.bytes_down,
        duration = ?outcome.duration,
        "a stream ended"
    );
}
