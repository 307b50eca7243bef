//! RelayStream: a supervisor claims a relay that it was asked for.

use std::sync::Arc;

use tidegate_lifecycle::{Capabilities, End, Origin, Reason};
use tidegate_transport::ServerStream;
use tidegate_wire::frame::RelayInit;
use tokio::sync::oneshot;

use crate::claims::{self, Claim};
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
    let frames = first::frames();
    let read = first::read(
        &state,
        Origin::Supervisor,
        &mut recv,
        frames,
        RelayInit::parse,
    )
    .await;
    drop(place);
    let (respond, recv, end) = match read {
        Ok((init, reader)) => match find(&state, &init) {
            Ok((waiter, agreed)) => {
                let claim = Claim {
                    respond,
                    recv,
                    reader,
                    agreed,
                };
                let Err(Claim { respond, recv, .. }) = waiter.send(claim) else {
                    return;
                };
                (respond, recv, claims::unknown(&init.channel))
            }
            Err(end) => (respond, recv, end),
        },
        Err(NoFirst::Refuse(end)) => (respond, recv, end),
        Err(NoFirst::Gone(_)) => return,
    };
    let end = end.via(&state.hop);
    tracing::debug!(reason = %end.reason, why = end.message, "a claim was refused");
    first::refuse(respond, recv, &end).await;
}

/// Who waits for a claim, and what the hop agrees on.
type Found = (oneshot::Sender<Claim>, Capabilities);

fn find(state: &State, init: &RelayInit) -> Result<Found, End> {
    if let Some(session) = &init.session
        && !state.sessions.has(session)
    {
        let message = format!(
            "this gateway holds no session {session}: it is over, and relays belong to its successor, or \
             it never was one of this gateway's"
        );
        return Err(
            End::new(Origin::Gateway, Reason::StaleSession, message).on(init.channel.clone())
        );
    }
    state.claims.take(init)
}
