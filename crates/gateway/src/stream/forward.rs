//! ForwardTcp: a client's stream, in one task from its first message to its last byte.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tidegate_bridge::{FrameEnd, RpcKind};
use tidegate_lifecycle::leg::{Leg, Orientation};
use tidegate_lifecycle::relay::Relay;
use tidegate_lifecycle::{Capabilities, Origin};
use tidegate_transport::{RecvHalf, Respond, ServerStream};
use tidegate_wire::frame::{ForwardInit, FrameReader};

use super::carried::{self, Admitted, Carried};
use super::opening::Way;
use super::{Kind, Subject};
use crate::first::{self, NoFirst};
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
async fn accept(state: Arc<State>, stream: ServerStream) -> Option<Carried<Bytes, Relay>> {
    let ServerStream {
        head,
        mut recv,
        respond,
        connection,
    } = stream;
    let deadline = carried::deadline(&head.headers, Instant::now());
    match begin(&state, &mut recv, deadline).await {
        Ok(begun) => {
            let way = Way::anywhere(&head.headers, deadline);
            // A stream that lives for days should not keep what its request said.
            drop(head);
            let place = (connection.shard, way);
            Some(join(begun, state, (respond, recv), place, deadline))
        }
        Err((kind, none)) => {
            carried::refuse(&state, kind, none, respond, recv).await;
            None
        }
    }
}

async fn begin(
    state: &State,
    recv: &mut RecvHalf,
    deadline: Option<Instant>,
) -> Result<(Admitted, FrameReader), (Kind, NoFirst)> {
    let begins = (first::frames(), ForwardInit::parse);
    let heard = carried::hear(state, Call::Forward, recv, deadline, begins).await;
    let (init, reader) = heard.map_err(|none| (Kind::Forward, none))?;
    let subject = Subject::target(init.sandbox, init.target);
    let kind = subject.kind();
    let admitted = state
        .tickets
        .check(&init.token, &subject.sandbox)
        .and_then(|()| Admitted::new(state, subject, init.capabilities));
    match admitted {
        Ok(admitted) => Ok((admitted, reader)),
        Err(end) => Err((kind, NoFirst::Refuse(end))),
    }
}

fn join(
    (admitted, reader): (Admitted, FrameReader),
    state: Arc<State>,
    (respond, recv): (Respond, RecvHalf),
    place: (usize, Way),
    deadline: Option<Instant>,
) -> Carried<Bytes, Relay> {
    let agreed = Capabilities::STREAM.intersect(admitted.capabilities);
    let kind = RpcKind::ForwardServer;
    let downstream = FrameEnd::accepted(kind, respond, recv, reader, agreed, &state.buffered);
    let now = Instant::now();
    let client = Leg::acceptor(Orientation::Forward, agreed.half_close());
    let (limits, hop) = (state.times.stream, state.hop.clone());
    let mut relay = Relay::new(client, Leg::awaited(), limits, Origin::Gateway, hop, now);
    if let Some(deadline) = deadline {
        relay.set_deadline(deadline);
    }
    admitted.join(state, downstream, relay, place)
}
