//! PeerRelay: a stream that another gateway took in, and that leads to a session of this one.
//!
//! Its path ends here or nowhere: a gateway that is asked does not ask on.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tidegate_bridge::{ExecEnd, FrameEnd, RpcKind};
use tidegate_lifecycle::exec::{Execution, Hop};
use tidegate_lifecycle::leg::{Leg, Orientation};
use tidegate_lifecycle::relay::Relay;
use tidegate_lifecycle::{Capabilities, Origin, Target};
use tidegate_transport::{RecvHalf, Respond, ServerStream};
use tidegate_wire::exec::{Direction, Item, ItemReader};
use tidegate_wire::frame::{FrameLimit, FrameReader, PeerInit};

use super::carried::{self, Admitted, Carried};
use super::opening::Way;
use super::{Kind, Subject};
use crate::first::{self, NoFirst};
use crate::state::State;
use crate::waiting::Call;

/// Serves one PeerRelay. See [`forward`](super::forward) for what lies where.
pub(crate) async fn serve(state: Arc<State>, stream: ServerStream) {
    match Box::pin(accept(state, stream)).await {
        None => {}
        Some(Taken::Bytes(mut carried)) => {
            let outcome = carried.tunnel.run().await;
            Box::pin(carried.conclude(outcome)).await;
        }
        Some(Taken::Command(mut carried)) => {
            let outcome = carried.tunnel.run().await;
            Box::pin(carried.conclude(outcome)).await;
        }
    }
}

/// What was taken in.
enum Taken {
    Bytes(Box<Carried<Bytes, Relay>>),
    Command(Box<Carried<Item, Execution>>),
}

/// Reads the first message and takes the stream in, or answers why not.
async fn accept(state: Arc<State>, stream: ServerStream) -> Option<Taken> {
    let ServerStream {
        head,
        mut recv,
        respond,
        connection,
    } = stream;
    let deadline = carried::deadline(&head.headers, Instant::now());
    let begins = (first::frames(), PeerInit::parse);
    let heard = carried::hear(&state, Call::Peer, &mut recv, deadline, begins).await;
    let (init, reader) = match heard {
        Ok(heard) => heard,
        Err(none) => {
            carried::refuse(&state, Kind::Forward, none, respond, recv).await;
            return None;
        }
    };
    let kind = Kind::of(&init.target);
    let admitted = state
        .doorkeeper
        .admit(&init, &head.headers, &connection)
        .and_then(|()| {
            let subject = Subject::relayed(&init);
            Admitted::new(&state, subject, init.capabilities)
        });
    match admitted {
        Ok(admitted) => {
            drop(head);
            let generation = init.session.as_ref().map(|(_, generation)| *generation);
            let asked = Asked {
                admitted,
                way: Way::Here(generation),
                lane: connection.shard,
                deadline,
            };
            Some(asked.join(state, &init.target, reader, (respond, recv)))
        }
        Err(end) => {
            carried::refuse(&state, kind, NoFirst::Refuse(end), respond, recv).await;
            None
        }
    }
}

/// A stream that may begin.
struct Asked {
    admitted: Admitted,
    way: Way,
    lane: usize,
    deadline: Option<Instant>,
}

impl Asked {
    fn join(
        self,
        state: Arc<State>,
        target: &Target,
        reader: FrameReader,
        call: (Respond, RecvHalf),
    ) -> Taken {
        match target {
            Target::Tcp { .. } | Target::Ssh => {
                Taken::Bytes(Box::new(self.bytes(state, reader, call)))
            }
            Target::Exec => Taken::Command(Box::new(self.command(state, reader, call))),
        }
    }

    fn bytes(
        self,
        state: Arc<State>,
        reader: FrameReader,
        (respond, recv): (Respond, RecvHalf),
    ) -> Carried<Bytes, Relay> {
        let agreed = Capabilities::STREAM.intersect(self.admitted.capabilities);
        let kind = RpcKind::PeerServer;
        let downstream = FrameEnd::accepted(kind, respond, recv, reader, agreed, &state.buffered);
        let requester = Leg::acceptor(Orientation::Forward, agreed.half_close()).between_gateways();
        let (limits, hop, now) = (state.times.stream, state.hop.clone(), Instant::now());
        let supervisor = Leg::awaited();
        let mut relay = Relay::new(requester, supervisor, limits, Origin::Gateway, hop, now);
        if let Some(deadline) = self.deadline {
            relay.set_deadline(deadline);
        }
        self.admitted
            .join(state, downstream, relay, (self.lane, self.way))
    }

    fn command(
        self,
        state: Arc<State>,
        reader: FrameReader,
        (respond, recv): (Respond, RecvHalf),
    ) -> Carried<Item, Execution> {
        let agreed = Capabilities::EXEC.intersect(self.admitted.capabilities);
        let kind = RpcKind::PeerServer;
        let items = ItemReader::behind(reader, Direction::Input, FrameLimit::of(agreed));
        let reader = ExecEnd::reader(kind, [], items);
        let downstream = ExecEnd::accepted(kind, respond, recv, reader, agreed, &state.buffered);
        let requester = Hop::acceptor(Orientation::Forward, agreed).between_gateways();
        let (limits, hop, now) = (state.times.stream, state.hop.clone(), Instant::now());
        let supervisor = Hop::awaited();
        let mut execution =
            Execution::new(requester, supervisor, limits, Origin::Gateway, hop, now);
        if let Some(deadline) = self.deadline {
            execution.set_deadline(deadline);
        }
        self.admitted
            .join(state, downstream, execution, (self.lane, self.way))
    }
}
