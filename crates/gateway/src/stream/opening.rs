//! From a client's wish to an open path: find a session, ask its supervisor, wait for the claim.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_bridge::{Cargo, ExecEnd, Handle, Opened, RpcEnd, RpcKind};
use tidegate_lifecycle::id::{ChannelId, SessionId};
use tidegate_lifecycle::session::RelayOpen;
use tidegate_lifecycle::{Capabilities, Capability, End, Reason};
use tidegate_wire::exec::{Direction, Item, ItemReader};
use tidegate_wire::frame::{FrameLimit, FrameReader};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use super::registry::PendingGuard;
use super::{Subject, resolve};
use crate::claims::{Asked, Claim};
use crate::session::{Leash, Session, Wish};
use crate::state::State;

/// What a relay can carry.
pub(super) trait Freight: Cargo {
    /// What a session must understand for it, with a word for what is missing else.
    const REQUIRES: Option<(Capability, &'static str)>;

    /// A reader of what follows a relay's init, which `frames` has read and nothing else.
    fn behind(frames: FrameReader, kind: RpcKind, agreed: Capabilities) -> Self::Reader;
}

impl Freight for Bytes {
    const REQUIRES: Option<(Capability, &'static str)> = None;

    fn behind(frames: FrameReader, _kind: RpcKind, _agreed: Capabilities) -> FrameReader {
        frames
    }
}

impl Freight for Item {
    const REQUIRES: Option<(Capability, &'static str)> =
        Some((Capability::ExecRelay, "does not run commands"));

    fn behind(frames: FrameReader, kind: RpcKind, agreed: Capabilities) -> Self::Reader {
        let items = ItemReader::behind(frames, Direction::Event, FrameLimit::of(agreed));
        ExecEnd::reader(kind, [], items)
    }
}

/// A path that is being opened.
///
/// Dropping it on the way gives up its place, and a claim that comes later is refused. The
/// supervisor is told by whoever holds the [`Leash`].
pub(super) struct Opening {
    pub(super) state: Arc<State>,
    pub(super) subject: Subject,
    pub(super) handle: Handle,
    /// The thread that carries the stream.
    pub(super) lane: usize,
    pub(super) leash: Leash,
    pub(super) place: PendingGuard,
}

impl Opening {
    /// Opens the path. A supervisor that turns out to have moved on is not an answer: its next
    /// session is waited for, because nothing of the client's has been forwarded.
    pub(super) async fn run<I: Freight>(self) -> Result<(RpcEnd<I>, Opened), End> {
        let until = Instant::now() + self.state.times.session_wait;
        let mut stale: Option<SessionId> = None;
        loop {
            let sandbox = &self.subject.sandbox;
            let session = resolve::session(&self.state, sandbox, stale.as_ref(), until).await?;
            self.check::<I>(&session)?;
            match self.ask(&session).await {
                Ok(claim) => return Ok(self.join(claim, &session)),
                Err(end) if has_moved_on(end.reason) => stale = Some(session.id.clone()),
                Err(end) => return Err(end),
            }
        }
    }

    /// Checks that the supervisor knows what it would be asked for.
    fn check<I: Freight>(&self, session: &Session) -> Result<(), End> {
        match I::REQUIRES {
            Some((capability, what)) if !session.agreed.has(capability) => {
                let sandbox = &self.subject.sandbox;
                let message = format!(
                    "the supervisor of sandbox {sandbox} {what}: it does not offer {capability}"
                );
                Err(self.state.end(Reason::CapabilityRequired, message))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Asks the supervisor for a relay and waits until it is claimed.
    async fn ask(&self, session: &Arc<Session>) -> Result<Claim, End> {
        let channel = ChannelId::new(Uuid::new_v4().simple().to_string());
        let asked = Asked {
            session: session.id.clone(),
            agreed: session.agreed,
        };
        let mut expected = self.state.claims.expect(channel.clone(), asked);
        let (wish, mut verdict) =
            Wish::new(self.relay_open(&channel, session), self.handle.clone());
        self.leash.hold(session, channel.clone());
        let limit = self.limit(session);
        let answer = async {
            session.ask(wish).await;
            tokio::select! {
                biased;
                end = verdict.fallen() => Err(end),
                claim = expected.claimed() => claim.ok_or_else(|| lost_claim(&self.state)),
            }
        };
        let answer = timeout(limit, answer).await.unwrap_or_else(|_| {
            let message =
                format!("the sandbox's supervisor did not open the relay within {limit:?}");
            Err(self
                .state
                .end(Reason::RelayOpenTimeout, message)
                .on(channel))
        });
        // A verdict that fell in this very moment counts; from here on the stream itself is told.
        verdict.close().map_or(answer, Err)
    }

    fn relay_open(&self, channel: &ChannelId, session: &Session) -> RelayOpen {
        let told = session.agreed.has(Capability::RelayAbort);
        RelayOpen {
            channel: channel.clone(),
            target: self.subject.target.clone(),
            dial_timeout: told.then_some(self.state.times.dial),
            lane: u32::try_from(self.lane).unwrap_or_default(),
        }
    }

    fn limit(&self, session: &Session) -> Duration {
        if session.agreed.has(Capability::RelayAbort) {
            self.state.times.relay_open
        } else {
            self.state.times.legacy_relay_open
        }
    }

    fn join<I: Freight>(self, claim: Claim, session: &Session) -> (RpcEnd<I>, Opened) {
        let Claim {
            respond,
            recv,
            reader,
            agreed,
        } = claim;
        let buffered = &self.state.buffered;
        let liveness = session.agreed.has(Capability::SessionLiveness);
        let kind = RpcKind::RelayServer { liveness };
        let reader = I::behind(reader, kind, agreed);
        let mut end = RpcEnd::accepted(kind, respond, recv, reader, agreed, buffered);
        end.count_oversize(&self.state.metrics.oversize);
        self.place.opened();
        let opened = Opened {
            session: Some(session.id.clone()),
            ..Opened::on(agreed)
        };
        (end, opened)
    }
}

/// Whether another session of the sandbox is the place to ask.
const fn has_moved_on(reason: Reason) -> bool {
    matches!(reason, Reason::StaleSession | Reason::Superseded)
}

fn lost_claim(state: &State) -> End {
    let message = "the supervisor's call for the relay broke as it began";
    state.end(Reason::TransportLost, message)
}

#[cfg(test)]
mod tests {
    use tidegate_directory::{Memory, MemorySettings};
    use tidegate_lifecycle::id::SandboxName;
    use tidegate_lifecycle::target::Target;

    use super::*;
    use crate::config::Config;
    use crate::session::tests::session;

    #[tokio::test]
    async fn a_session_that_departs_before_it_is_asked_is_not_the_last_word() {
        let directory = Memory::new(MemorySettings::default());
        let state = Arc::new(State::new(Config::default(), Arc::new(directory)));
        let (departed, wishes) = session("departed", 1);
        drop(wishes);
        state.sessions.enter(&departed);
        let opening = opening(&state);
        let successor = async {
            let (next, mut wishes) = session("next", 2);
            state.sessions.enter(&next);
            wishes.recv().await.is_some()
        };
        tokio::select! {
            biased;
            opened = opening.run::<Bytes>() => panic!("it had to wait: {opened:?}"),
            asked = successor => assert!(asked),
        }
    }

    fn opening(state: &Arc<State>) -> Opening {
        let sandbox = SandboxName::parse("known").unwrap();
        let subject = Subject::target(sandbox, Target::tcp("localhost", 80).unwrap());
        let handle = Handle::new(std::time::Instant::now());
        let leash = Leash::default();
        let (_, place) = state
            .streams
            .admit(subject.clone(), handle.clone(), leash.clone())
            .unwrap();
        Opening {
            state: Arc::clone(state),
            subject,
            handle,
            lane: 0,
            leash,
            place,
        }
    }
}
