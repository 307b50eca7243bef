//! ConnectSupervisor: a session from its hello to its last word.

use std::net::SocketAddr;
use std::sync::Arc;

use http::HeaderMap;
use tidegate_bridge::{ControlReceiver, ControlSender, control_receiver, control_sender};
use tidegate_directory::Claim;
use tidegate_lifecycle::id::SessionId;
use tidegate_lifecycle::session::{Accepted, FromGateway};
use tidegate_lifecycle::{Capability, End, Origin, Reason};
use tidegate_transport::{Respond, ServerStream};
use tidegate_wire::message::MessageReader;
use tidegate_wire::metadata;
use tidegate_wire::session::encode_gateway;
use tracing::Instrument as _;
use uuid::Uuid;

use super::Session;
use super::conclude::{self, Last};
use super::handle::{Facts, Wishes};
use super::hello::{self, Greeted, NoHello};
use super::run::Control;
use crate::first::NoFirst;
use crate::state::State;
use crate::waiting::Call;

/// Serves one ConnectSupervisor.
///
/// What a session needs only while it begins and ends lies on the heap meanwhile.
pub(crate) async fn serve(state: Arc<State>, stream: ServerStream) {
    let Some(mut live) = Box::pin(accept(state, stream)).await else {
        return;
    };
    let span = live.span.clone();
    let last = live.control.run().instrument(span.clone()).await;
    Box::pin(live.conclude(last)).instrument(span).await;
}

/// Reads the hello and gives the session its place, or answers why not.
async fn accept(state: Arc<State>, stream: ServerStream) -> Option<Live> {
    let ServerStream {
        recv,
        respond,
        connection,
        ..
    } = stream;
    let mut receiver = control_receiver(recv, MessageReader::new(), Origin::Supervisor);
    let Some(silent) = state.waiting.enter(Call::Session) else {
        let end = state.end(
            Reason::LimitSessions,
            "too many calls wait for their first message",
        );
        conclude::refuse(respond, receiver, &end).await;
        return None;
    };
    let greeted = hello::read(&state, &mut receiver).await;
    drop(silent);
    let none = match greeted {
        Ok(greeted) => match register(&state, &greeted).await {
            Ok((presence, wishes)) => {
                let peer = connection.peer;
                return begin(greeted, presence, wishes, respond, receiver, peer).await;
            }
            Err(end) => NoHello::Reject(end),
        },
        Err(none) => none,
    };
    match none {
        NoHello::Reject(end) => reject(&state, respond, receiver, end.via(&state.hop)).await,
        NoHello::First(NoFirst::Refuse(end)) => {
            let end = end.via(&state.hop);
            tracing::debug!(reason = %end.reason, why = end.message, "a session was refused");
            conclude::refuse(respond, receiver, &end).await;
        }
        NoHello::First(NoFirst::Gone(_)) => {}
    }
    None
}

/// Gives the session its place. The one before it, if there is one, is told to end.
async fn register(state: &Arc<State>, greeted: &Greeted) -> Result<(Presence, Wishes), End> {
    let Greeted { hello, machine } = greeted;
    if state.draining.is_cancelled() {
        return Err(state.drained());
    }
    if hello.held.contains(&state.id) && state.sessions.has_of(&hello.sandbox, &hello.instance) {
        let message =
            "this supervisor has a session with this gateway already, and looks for another";
        return Err(state.end(Reason::DuplicateSession, message));
    }
    let replaces = state.sessions.live(&hello.sandbox).is_some();
    if !replaces && state.sessions.len() >= state.config.max_sessions {
        let limit = state.config.max_sessions;
        let message = format!("{limit} supervisors are connected to this gateway, its limit");
        return Err(state.end(Reason::LimitSessions, message));
    }
    let id = SessionId::new(Uuid::new_v4().to_string());
    let claim = Claim {
        sandbox: hello.sandbox.clone(),
        session: id.clone(),
        instance: hello.instance.clone(),
        homes: hello.homes,
        replaces: hello.replaces.clone(),
    };
    let claimed = state
        .directory
        .claim(claim)
        .await
        .map_err(|error| state.end(Reason::DirectoryUnavailable, error.to_string()))?;
    let (session, wishes) = Session::new(Facts {
        id,
        sandbox: hello.sandbox.clone(),
        instance: hello.instance.clone(),
        generation: claimed.generation,
        agreed: machine.agreed(),
    });
    let presence = Presence {
        state: Arc::clone(state),
        session: Arc::new(session),
    };
    state.sessions.enter(&presence.session);
    Ok((presence, wishes))
}

/// Accepts a session that has its place.
async fn begin(
    greeted: Greeted,
    presence: Presence,
    wishes: Wishes,
    respond: Respond,
    receiver: ControlReceiver,
    peer: SocketAddr,
) -> Option<Live> {
    let (state, session) = (Arc::clone(&presence.state), Arc::clone(&presence.session));
    let span = tracing::info_span!(
        "session", id = %session.id, sandbox = %session.sandbox, instance = %session.instance, %peer,
    );
    let mut headers = HeaderMap::new();
    metadata::set_session_id(&mut headers, &session.id);
    let Ok(send) = respond.headers(headers) else {
        presence.depart().await;
        return None;
    };
    let mut sender = control_sender(send, &state.buffered);
    sender.push(encode_gateway(&FromGateway::Accepted(accepted(
        &state, &session,
    ))));
    span.in_scope(|| tell(&session));
    let machine = greeted.machine;
    let control = Control::new(state, session, machine, receiver, sender, wishes);
    Some(Live {
        presence,
        control,
        span,
    })
}

fn tell(session: &Session) {
    tracing::info!(capabilities = ?session.agreed, "a session began");
    if !session.agreed.has(Capability::SessionLiveness) {
        tracing::warn!(
            "the supervisor promises no heartbeats: its silence is not taken for its end"
        );
    }
}

/// A session on its way.
struct Live {
    presence: Presence,
    control: Control,
    span: tracing::Span,
}

impl Live {
    async fn conclude(self, last: Last) {
        let Self {
            presence,
            mut control,
            ..
        } = self;
        // Nobody finds it any more before its relays hear of it: those that are not open yet ask the
        // successor.
        presence.state.sessions.leave(&presence.session);
        let Last {
            status,
            relays,
            own,
        } = last;
        control.end_relays(&relays, own);
        // However long the directory takes: the relays know why they ended.
        presence.depart().await;
        tracing::info!(reason = %relays.reason, why = relays.message, "a session ended");
        let (sender, receiver) = control.into_parts();
        conclude::say(sender, receiver, status).await;
    }
}

fn accepted(state: &State, session: &Session) -> Accepted {
    Accepted {
        session: session.id.clone(),
        generation: session.generation,
        heartbeat_interval: state.times.heartbeat,
        capabilities: session.agreed,
        gateway: state.id.to_string(),
        gateways: Vec::new(),
        public_url: None,
    }
}

async fn reject(state: &State, respond: Respond, receiver: ControlReceiver, end: End) {
    tracing::info!(reason = %end.reason, why = end.message, "a session was refused");
    let Ok(send) = respond.headers(HeaderMap::new()) else {
        return;
    };
    let mut sender: ControlSender = control_sender(send, &state.buffered);
    let rejected = FromGateway::Rejected {
        reason: end.message.clone(),
    };
    sender.push(encode_gateway(&rejected));
    conclude::say(sender, receiver, Some(Err(end))).await;
}

/// A session's place in the tables. Dropped, it is given back in this process at least.
struct Presence {
    state: Arc<State>,
    session: Arc<Session>,
}

impl Presence {
    /// Gives the place back everywhere.
    async fn depart(self) {
        self.state.sessions.leave(&self.session);
        conclude::release(&self.state, &self.session).await;
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.state.sessions.leave(&self.session);
    }
}
