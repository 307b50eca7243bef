//! ForwardTcp: a client's stream, in one task from its first message to its last byte.

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, HeaderValue};
use tidegate_bridge::{AwaitedEnd, FrameEnd, Handle, Outcome, RpcKind, Tunnel};
use tidegate_lifecycle::leg::{Leg, Orientation};
use tidegate_lifecycle::relay::Relay;
use tidegate_lifecycle::{Capabilities, End, Origin, Reason};
use tidegate_transport::{RecvHalf, Respond, ServerStream};
use tidegate_wire::frame::{ForwardInit, FrameReader};
use tidegate_wire::metadata;
use tokio::time::timeout_at;

use super::opening::Opening;
use super::registry::{PendingGuard, StreamGuard};
use super::{Kind, Subject};
use crate::first::{self, NoFirst};
use crate::session::Leash;
use crate::state::State;
use crate::waiting::Call;

/// Serves one ForwardTcp.
///
/// What a stream needs only while it begins and ends lies on the heap meanwhile: most streams spend
/// their life in between, and there are many.
pub(crate) async fn serve(state: Arc<State>, stream: ServerStream) {
    if let Some(mut carried) = Box::pin(accept(state, stream)).await {
        let outcome = carried.tunnel.run().await;
        Box::pin(carried.conclude(outcome)).await;
    }
}

/// Reads the first message and takes the stream in, or answers why not.
async fn accept(state: Arc<State>, stream: ServerStream) -> Option<Carried> {
    let ServerStream {
        head,
        mut recv,
        respond,
        connection,
    } = stream;
    let deadline = deadline(&head.headers, Instant::now());
    match begin(&state, &mut recv, deadline).await {
        Ok(begun) => {
            // A stream that lives for days should not keep what its request said.
            drop(head);
            Some(begun.carried(state, (respond, recv), connection.shard, deadline))
        }
        Err((kind, none)) => {
            refuse(&state, kind, none, respond, recv).await;
            None
        }
    }
}

/// A stream that was taken in.
struct Begun {
    capabilities: Capabilities,
    reader: FrameReader,
    subject: Subject,
    handle: Handle,
    guard: StreamGuard,
    place: PendingGuard,
}

async fn begin(
    state: &Arc<State>,
    recv: &mut RecvHalf,
    deadline: Option<Instant>,
) -> Result<Begun, (Kind, NoFirst)> {
    let unknown = |none| (Kind::Forward, none);
    let Some(silent) = state.waiting.enter(Call::Forward) else {
        let end = state.end(
            Reason::LimitStreams,
            "too many calls wait for their first message",
        );
        return Err(unknown(NoFirst::Refuse(end)));
    };
    let first = first::read(state, Origin::Client, recv, ForwardInit::parse);
    let read = match deadline {
        None => first.await,
        Some(at) => timeout_at(at.into(), first)
            .await
            .unwrap_or_else(|_| Err(NoFirst::Refuse(overdue(state)))),
    };
    drop(silent);
    let (init, reader) = read.map_err(unknown)?;
    let subject = Subject {
        sandbox: init.sandbox,
        target: init.target,
    };
    let kind = Kind::of(&subject.target);
    let handle = Handle::new(Instant::now());
    let places = state
        .tickets
        .check(&init.token, &subject.sandbox)
        .and_then(|()| state.streams.admit(subject.clone(), handle.clone()));
    let (guard, place) = places.map_err(|end| (kind, NoFirst::Refuse(end)))?;
    Ok(Begun {
        capabilities: init.capabilities,
        reader,
        subject,
        handle,
        guard,
        place,
    })
}

async fn refuse(state: &State, kind: Kind, none: NoFirst, respond: Respond, recv: RecvHalf) {
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

impl Begun {
    /// Joins the client's call and the path that is to be opened for it.
    fn carried(
        self,
        state: Arc<State>,
        (respond, recv): (Respond, RecvHalf),
        lane: usize,
        deadline: Option<Instant>,
    ) -> Carried {
        let Self {
            capabilities,
            reader,
            subject,
            handle,
            guard,
            place,
        } = self;
        let agreed = Capabilities::STREAM.intersect(capabilities);
        let leash = Leash::default();
        let opening = Opening {
            state: Arc::clone(&state),
            subject,
            handle: handle.clone(),
            lane,
            leash: leash.clone(),
            place,
        };
        let total = &state.buffered;
        let kind = RpcKind::ForwardServer;
        let mut downstream = FrameEnd::accepted(kind, respond, recv, reader, agreed, total);
        downstream.count_oversize(&state.metrics.oversize);
        if let Ok(id) = HeaderValue::from_str(guard.id().as_str()) {
            downstream.set_header(metadata::STREAM_ID, id);
        }
        let upstream = AwaitedEnd::new(Box::pin(opening.run()), total);
        let now = Instant::now();
        let client = Leg::acceptor(Orientation::Forward, agreed.half_close());
        let (limits, hop) = (state.times.stream, state.hop.clone());
        let mut relay = Relay::new(client, Leg::awaited(), limits, Origin::Gateway, hop, now);
        if let Some(deadline) = deadline {
            relay.set_deadline(deadline);
        }
        let tunnel = Tunnel::new(downstream, upstream, relay, handle, now);
        Carried {
            state,
            guard,
            leash,
            tunnel,
        }
    }
}

/// A stream on its way.
struct Carried {
    state: Arc<State>,
    guard: StreamGuard,
    leash: Leash,
    tunnel: Tunnel<FrameEnd, AwaitedEnd>,
}

impl Carried {
    /// Tells those who do not know it that the stream has ended, and lets it go.
    async fn conclude(self, outcome: Outcome) {
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

/// The end of the whole operation, where its caller set one.
fn deadline(headers: &HeaderMap, arrived: Instant) -> Option<Instant> {
    arrived.checked_add(metadata::timeout(headers)?)
}

/// Why a stream ends whose first message did not come before that.
fn overdue(state: &State) -> End {
    let message = "the call's own deadline passed before its first message";
    state.end(Reason::OperationTimeout, message)
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
