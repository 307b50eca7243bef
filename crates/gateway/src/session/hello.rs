//! The beginning of a session: a supervisor says who it is, and is taken in or refused.

use std::time::Instant;

use tidegate_bridge::{ControlReceiver, Said};
use tidegate_lifecycle::session::{FromSupervisor, GatewayAction, GatewaySession, Hello};
use tidegate_lifecycle::{Capabilities, End, Origin, Reason};
use tidegate_wire::session::decode_supervisor;
use tokio::time::timeout;

use crate::first::{self, NoFirst};
use crate::state::State;

/// A supervisor that has introduced itself.
pub(super) struct Greeted {
    pub(super) hello: Hello,
    pub(super) machine: GatewaySession,
}

/// Why a session does not begin.
pub(super) enum NoHello {
    /// There was no hello: the call is answered with a status.
    First(NoFirst),
    /// There was one, and it is refused in the session's own words too.
    Reject(End),
}

/// Waits for the hello.
pub(super) async fn read(
    state: &State,
    receiver: &mut ControlReceiver,
) -> Result<Greeted, NoHello> {
    let refuse = |end| NoHello::First(NoFirst::Refuse(end));
    let said = tokio::select! {
        biased;
        said = timeout(state.times.init, receiver.next()) => said,
        () = state.draining.cancelled() => return Err(refuse(state.drained())),
    };
    let message = match said {
        Ok(Said::Message(message)) => message,
        Ok(Said::End | Said::Status(_)) => {
            let message = "the stream ended before a hello";
            return Err(refuse(first::violation(Origin::Supervisor, message)));
        }
        Ok(Said::Malformed(error)) => return Err(refuse(first::broken(Origin::Supervisor, error))),
        Ok(Said::Lost(lost)) => {
            let message = format!("the supervisor went away before its hello: {lost}");
            let end = End::new(Origin::Supervisor, Reason::TransportLost, message);
            return Err(NoHello::First(NoFirst::Gone(end)));
        }
        Err(_) => return Err(refuse(first::late(state))),
    };
    let message = decode_supervisor(message)
        .map_err(|error| refuse(first::invalid(Origin::Supervisor, &error)))?;
    greet(state, message).map_err(|end| {
        if end.reason.is_violation() {
            refuse(end)
        } else {
            NoHello::Reject(end)
        }
    })
}

fn greet(state: &State, message: FromSupervisor) -> Result<Greeted, End> {
    let now = Instant::now();
    let mut machine = GatewaySession::new(Capabilities::SESSION, state.times.heartbeat, now);
    match machine.recv(message, now)? {
        GatewayAction::Register(hello) => Ok(Greeted { hello, machine }),
        GatewayAction::Opened { .. }
        | GatewayAction::Abort { .. }
        | GatewayAction::Note { .. }
        | GatewayAction::Drain { .. }
        | GatewayAction::CountUnknown
        | GatewayAction::Heartbeat
        | GatewayAction::Nothing => Err(first::violation(
            Origin::Supervisor,
            "the first message of a session must be a hello",
        )),
    }
}
