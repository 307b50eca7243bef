//! What other gateways did to the sessions of this one.

use std::sync::Arc;

use tidegate_directory::Event;

use super::Ending;
use crate::state::State;

/// Does to sessions what the directory says, as long as the gateway runs.
pub(crate) async fn obey(state: Arc<State>) {
    loop {
        match state.directory.next_event().await {
            Event::Ended { session, by } => {
                if let Some(session) = state.sessions.get(&session) {
                    session.end(Ending::Superseded(by));
                }
            }
            // Its supervisor says goodbye when it has what replaces it; until then what was on its
            // way to it is served.
            Event::Drained { session } => {
                if let Some(session) = state.sessions.get(&session) {
                    state.sessions.retire(&session);
                }
            }
            Event::Forgotten { session } => {
                if let Some(session) = state.sessions.get(&session) {
                    session.end(Ending::Deleted);
                }
            }
        }
    }
}
