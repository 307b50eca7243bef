//! The end of a session: what its supervisor is told, and what its relays are.

use tidegate_bridge::{ControlReceiver, ControlSender, Said, how_lost};
use tidegate_lifecycle::limits::STATUS_GRACE;
use tidegate_lifecycle::loss::Link;
use tidegate_lifecycle::{Capability, End, Origin, Reason};
use tidegate_transport::{Lost, Respond};
use tidegate_wire::status;
use tokio::time::timeout;

use super::Session;
use super::handle::Ending;
use crate::state::State;

/// A session's last word, to each of those who hear it.
#[derive(Debug)]
pub(super) struct Last {
    /// The call's status; none when there is nobody to hear it.
    pub(super) status: Option<Result<(), End>>,
    /// What every relay ends with.
    pub(super) relays: End,
    /// Whether this gateway decided it, so that relays are told on both sides.
    pub(super) own: bool,
}

impl Last {
    /// This gateway ends the session.
    pub(super) fn decided(state: &State, session: &Session, ending: &Ending) -> Self {
        let sandbox = &session.sandbox;
        let relays = match ending {
            Ending::Superseded(by) => {
                let by = match by.as_str() {
                    "" => String::new(),
                    by => format!(", of supervisor instance {by}"),
                };
                let message = format!("a newer session of sandbox {sandbox} took over{by}");
                state.end(Reason::Superseded, message)
            }
            Ending::Kicked => {
                let message = format!("an operator closed the session of sandbox {sandbox}");
                state.end(Reason::OperatorClosed, message)
            }
            Ending::Deleted => {
                let message = format!("sandbox {sandbox} was deleted");
                state.end(Reason::SandboxNotFound, message)
            }
            Ending::Draining => state.drained(),
        };
        let status = match ending {
            Ending::Deleted => Ok(()),
            Ending::Superseded(_) | Ending::Kicked | Ending::Draining => Err(relays.clone()),
        };
        Self {
            status: Some(status),
            relays,
            own: true,
        }
    }

    /// The supervisor has gone in peace.
    pub(super) const fn goodbye(relays: End) -> Self {
        Self {
            status: Some(Ok(())),
            relays,
            own: false,
        }
    }

    /// The supervisor broke a rule, or was silent for too long.
    pub(super) fn fault(state: &State, end: End) -> Self {
        let relays = end.seen_from_afar();
        Self {
            status: Some(Err(end.via(&state.hop))),
            relays,
            own: true,
        }
    }

    /// The stream is gone, and the supervisor with it.
    pub(super) fn lost(session: &Session, lost: Lost) -> Self {
        let liveness = session.agreed.has(Capability::SessionLiveness);
        let reason = how_lost(lost).reason(Link::Supervisor, liveness);
        let message = format!("the session of the sandbox's supervisor was lost: {lost}");
        Self {
            status: None,
            relays: End::new(Origin::Supervisor, reason, message),
            own: false,
        }
    }
}

/// Says the call's status behind what is queued, and gives the supervisor a moment to hear it.
pub(super) async fn say(
    mut sender: ControlSender,
    receiver: ControlReceiver,
    status: Option<Result<(), End>>,
) {
    let Some(status) = status else { return };
    let trailers = match &status {
        Ok(()) => status::ok(),
        Err(end) => status::trailers(end),
    };
    let flushed = timeout(STATUS_GRACE, sender.flush()).await;
    if matches!(flushed, Ok(Ok(()))) && sender.into_half().send_trailers(trailers).is_ok() {
        hear_out(receiver).await;
    }
}

/// Answers a call that is no session with a status and nothing else.
pub(super) async fn refuse(respond: Respond, receiver: ControlReceiver, end: &End) {
    if respond.trailers_only(status::trailers(end)).is_ok() {
        hear_out(receiver).await;
    }
}

/// Takes a session out of the directory. A successor stays untouched.
pub(super) async fn release(state: &State, session: &Session) {
    let released = state.directory.release(&session.sandbox, &session.id).await;
    if let Err(error) = released {
        tracing::warn!(%error, "a session that ended could not be taken out of the directory");
    }
}

async fn hear_out(mut receiver: ControlReceiver) {
    let talk = async { while let Said::Message(_) = receiver.next().await {} };
    // What a supervisor that talks on has to say is not waited for.
    let _ = timeout(STATUS_GRACE, talk).await;
}
