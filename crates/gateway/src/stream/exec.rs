//! ExecSandbox and ExecSandboxInteractive: two doors to a command, in one task each.
//!
//! The first has one request: what it says of stdin is all of it. Behind the doors there is no
//! difference.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use tidegate_bridge::{ExecEnd, RpcKind};
use tidegate_lifecycle::exec::{CommandLimits, Execution, Hop};
use tidegate_lifecycle::leg::Orientation;
use tidegate_lifecycle::{Capabilities, End, Origin, Reason};
use tidegate_transport::{RecvHalf, Respond, ServerStream};
use tidegate_wire::exec::{Dialect, Direction, ExecRequest, Item, ItemReader, Start};
use tidegate_wire::frame::{FrameError, FrameLimit};

use super::carried::{self, Admitted, Carried};
use super::opening::Way;
use super::{Kind, Subject};
use crate::first::{Beginning, First, NoFirst};
use crate::state::State;
use crate::waiting::Call;

/// Through which call a command is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// ExecSandbox: one request.
    Once,
    /// ExecSandboxInteractive: a stream of them.
    Interactive,
}

/// Serves one call for a command. See [`forward`](super::forward) for what lies where.
pub(crate) async fn serve(state: Arc<State>, stream: ServerStream, door: Door) {
    if let Some(mut carried) = Box::pin(accept(state, stream, door)).await {
        let outcome = carried.tunnel.run().await;
        Box::pin(carried.conclude(outcome)).await;
    }
}

/// Reads the first message and takes the command in, or answers why not.
async fn accept(
    state: Arc<State>,
    stream: ServerStream,
    door: Door,
) -> Option<Carried<Item, Execution>> {
    let ServerStream {
        head,
        mut recv,
        respond,
        connection,
    } = stream;
    let deadline = carried::deadline(&head.headers, Instant::now());
    match begin(&state, &mut recv, door, deadline).await {
        Ok(begun) => {
            let way = Way::anywhere(&head.headers, deadline);
            drop(head);
            let place = (connection.shard, way);
            Some(begun.join(state, (respond, recv), place, deadline))
        }
        Err(none) => {
            carried::refuse(&state, Kind::Exec, none, respond, recv).await;
            None
        }
    }
}

/// A command that was taken in.
struct Begun {
    admitted: Admitted,
    start: Start,
    reader: ItemReader,
    door: Door,
}

async fn begin(
    state: &State,
    recv: &mut RecvHalf,
    door: Door,
    deadline: Option<Instant>,
) -> Result<Begun, NoFirst> {
    let reader = ItemReader::new(Dialect::Client, Direction::Input, FrameLimit::Legacy);
    let (request, reader) = match door {
        Door::Once => {
            let begins = (Request(reader), ExecRequest::parse);
            let heard = carried::hear(state, Call::Exec, recv, deadline, begins).await;
            heard.map(|(request, Request(reader))| (request, reader))?
        }
        Door::Interactive => {
            let begins = (reader, ExecRequest::parse);
            carried::hear(state, Call::Exec, recv, deadline, begins).await?
        }
    };
    let ExecRequest { sandbox, start } = request;
    check(&start).map_err(NoFirst::Refuse)?;
    let subject = Subject::command(sandbox, &start.command);
    let admitted = Admitted::new(state, subject, start.capabilities);
    Ok(Begun {
        admitted: admitted.map_err(NoFirst::Refuse)?,
        start,
        reader,
        door,
    })
}

/// Refuses a command that no sandbox would run.
fn check(start: &Start) -> Result<(), End> {
    let checked = start.command.check(&CommandLimits::default());
    checked.map_err(|invalid| {
        End::new(
            Origin::Client,
            Reason::InvalidRequest,
            format!("bad {invalid}"),
        )
    })
}

impl Begun {
    fn join(
        self,
        state: Arc<State>,
        (respond, recv): (Respond, RecvHalf),
        place: (usize, Way),
        deadline: Option<Instant>,
    ) -> Carried<Item, Execution> {
        let Self {
            admitted,
            mut start,
            reader,
            door,
        } = self;
        let agreed = Capabilities::EXEC.intersect(admitted.capabilities);
        start.capabilities = agreed;
        let kind = RpcKind::ExecServer;
        let fin = (door == Door::Once).then_some(Item::StdinFin);
        let said = Item::Start(Box::new(start)).pieces().chain(fin);
        let reader = ExecEnd::reader(kind, said, reader);
        let downstream = ExecEnd::accepted(kind, respond, recv, reader, agreed, &state.buffered);
        let caller = Hop::acceptor(Orientation::Forward, agreed);
        let (limits, hop) = (state.times.stream, state.hop.clone());
        let now = Instant::now();
        let process = Hop::awaited();
        let mut execution = Execution::new(caller, process, limits, Origin::Gateway, hop, now);
        if let Some(deadline) = deadline {
            execution.set_deadline(deadline);
        }
        admitted.join(state, downstream, execution, place)
    }
}

/// Reads the one request of ExecSandbox.
struct Request(ItemReader);

impl Beginning for Request {
    const WHAT: &'static str = "the request";

    fn push(&mut self, bytes: Bytes) {
        self.0.push(bytes);
    }

    fn first(&mut self) -> Result<Option<First>, FrameError> {
        Ok(self.0.request()?.map(First::Init))
    }

    fn buffered(&self) -> usize {
        self.0.buffered()
    }
}
