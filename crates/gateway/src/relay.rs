//! RelayStream: a supervisor claims a relay that it was asked for.

use std::sync::Arc;

use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_transport::ServerStream;
use tidegate_wire::frame::RelayInit;

use crate::claims::Claim;
use crate::first::{self, NoFirst};
use crate::state::State;
use crate::waiting::Call;

/// Serves one RelayStream up to its claim. From there on the stream's own task has it.
pub(crate) async fn serve(state: Arc<State>, stream: ServerStream) {
    let ServerStream {
        mut recv, respond, ..
    } = stream;
    let Some(place) = state.waiting.enter(Call::Relay) else {
        let end = state.end(
            Reason::LimitStreams,
            "too many calls wait for their first message",
        );
        return first::refuse(respond, recv, &end).await;
    };
    let read = first::read(&state, Origin::Supervisor, &mut recv, RelayInit::parse).await;
    drop(place);
    let end = match read {
        Ok((init, reader)) => match find(&state, &init) {
            Ok((waiter, agreed)) => {
                // The opener may have given up in this very moment: dropping the claim resets the
                // call, and the supervisor is told why on its control stream.
                let _ = waiter.send(Claim {
                    respond,
                    recv,
                    reader,
                    agreed,
                });
                return;
            }
            Err(end) => end.via(&state.hop),
        },
        Err(NoFirst::Refuse(end)) => end.via(&state.hop),
        Err(NoFirst::Gone(_)) => return,
    };
    tracing::debug!(reason = %end.reason, "a claim was refused: {}", end.message);
    first::refuse(respond, recv, &end).await;
}

type Found = (
    tokio::sync::oneshot::Sender<Claim>,
    tidegate_lifecycle::Capabilities,
);

fn find(state: &State, init: &RelayInit) -> Result<Found, End> {
    if let Some(session) = &init.session
        && !state.sessions.has(session)
    {
        let message = format!("session {session} is over: relays belong to its successor");
        return Err(
            End::new(Origin::Gateway, Reason::StaleSession, message).on(init.channel.clone())
        );
    }
    state.claims.take(init)
}
