//! From a caller's wish to an open path: find a session, ask its supervisor, wait for the claim; or ask
//! the gateway that has one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use tidegate_bridge::{Cargo, ExecEnd, Handle, Opened, RpcEnd, RpcKind};
use tidegate_directory::Home;
use tidegate_lifecycle::id::{ChannelId, GatewayId, Generation};
use tidegate_lifecycle::session::RelayOpen;
use tidegate_lifecycle::{Capabilities, Capability, End, Origin, Reason};
use tidegate_peer_relay::{PeerCall, Unopened};
use tidegate_wire::exec::{Direction, Item, ItemReader};
use tidegate_wire::frame::{FrameLimit, FrameReader, PeerInit};
use tidegate_wire::metadata;
use tokio::time::timeout;
use uuid::Uuid;

use super::Subject;
use super::registry::PendingGuard;
use super::route::{Route, Search};
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

/// Where a path may lead.
pub(super) enum Way {
    /// To any gateway that has a session.
    Anywhere(Errand),
    /// To a session of this gateway that is not older than this: another gateway asks.
    Here(Option<Generation>),
}

/// What another gateway is told beside what it is asked for.
pub(super) struct Errand {
    deadline: Option<std::time::Instant>,
    trace: HeaderMap,
}

impl Way {
    /// The way of a client's call, which came with `headers`.
    pub(super) fn anywhere(headers: &HeaderMap, deadline: Option<std::time::Instant>) -> Self {
        let mut trace = HeaderMap::new();
        metadata::pass_trace(headers, &mut trace);
        Self::Anywhere(Errand { deadline, trace })
    }
}

impl Errand {
    fn headers(&self) -> HeaderMap {
        let mut headers = self.trace.clone();
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            metadata::set_timeout(&mut headers, left);
        }
        headers
    }
}

/// A path that is being opened.
///
/// Dropping it on the way gives up its place, and a claim that comes later is refused. The
/// supervisor is told by whoever holds the [`Leash`], another gateway by the reset of its call.
pub(super) struct Opening {
    pub(super) state: Arc<State>,
    pub(super) subject: Subject,
    pub(super) handle: Handle,
    /// The thread that carries the stream.
    pub(super) lane: usize,
    pub(super) way: Way,
    pub(super) leash: Leash,
    pub(super) place: PendingGuard,
}

impl Opening {
    /// Opens the path.
    pub(super) async fn run<I: Freight>(self) -> Result<(RpcEnd<I>, Opened), End> {
        match &self.way {
            Way::Anywhere(errand) => {
                let (claimed, home) = self.search::<I>(errand).await?;
                self.place.opened(home.as_ref());
                Ok(claimed)
            }
            Way::Here(generation) => {
                let claimed = self.here::<I>(*generation).await?;
                self.place.opened(None);
                Ok(claimed)
            }
        }
    }

    /// Tries one route after the other. A supervisor or a gateway that turns out to have moved on is
    /// not an answer, because nothing of the client's has been forwarded.
    async fn search<I: Freight>(
        &self,
        errand: &Errand,
    ) -> Result<((RpcEnd<I>, Opened), Option<GatewayId>), End> {
        let mut search = Search::new(&self.state, &self.subject.sandbox);
        loop {
            match search.next().await? {
                Route::Local(session) => match self.open::<I>(&session).await {
                    Ok(opened) => return Ok((opened, None)),
                    Err(end) if has_moved_on(end.reason) => search.departed(&session),
                    Err(end) => return Err(end),
                },
                Route::Peer(home, url) => match self.ask_peer::<I>(&home, &url, errand).await {
                    Ok(opened) => return Ok((opened, Some(home.gateway))),
                    Err(Unopened::Refused(end)) if !is_elsewhere(end.reason) => return Err(end),
                    Err(Unopened::Refused(end) | Unopened::Unreached(end)) => {
                        tracing::debug!(gateway = %home.gateway, reason = %end.reason, why = end.message, "a home led nowhere");
                        search.failed(&home, end);
                    }
                    Err(Unopened::Unable(end)) => return Err(end),
                },
            }
        }
    }

    /// Opens the path to a session of this gateway, for another gateway that believes in one.
    async fn here<I: Freight>(
        &self,
        generation: Option<Generation>,
    ) -> Result<(RpcEnd<I>, Opened), End> {
        let live = self.state.sessions.live(&self.subject.sandbox);
        let asked = generation.unwrap_or_default();
        let Some(session) = live.filter(|session| session.generation >= asked) else {
            return Err(self.stale_owner().await);
        };
        match self.open::<I>(&session).await {
            Err(end) if has_moved_on(end.reason) => Err(self.stale_owner().await),
            answer => answer,
        }
    }

    /// Why another gateway asks in vain, with the name of the one to ask, if that is known.
    async fn stale_owner(&self) -> End {
        let sandbox = &self.subject.sandbox;
        let homes = self.state.directory.homes(sandbox).await;
        let newer = homes.unwrap_or_default();
        let newer = newer.iter().find(|home| home.gateway != self.state.id);
        let newer = newer.map_or_else(String::new, |home| {
            format!("; the gateway {} has one", home.gateway)
        });
        let id = &self.state.id;
        let message =
            format!("the gateway {id} has no such session of sandbox {sandbox} any more{newer}");
        End::new(Origin::Gateway, Reason::StaleOwner, message)
    }

    async fn open<I: Freight>(&self, session: &Arc<Session>) -> Result<(RpcEnd<I>, Opened), End> {
        self.check::<I>(session)?;
        let claim = self.ask(session).await?;
        Ok(self.join(claim, session))
    }

    async fn ask_peer<I: Freight>(
        &self,
        home: &Home,
        url: &str,
        errand: &Errand,
    ) -> Result<(RpcEnd<I>, Opened), Unopened> {
        let init = PeerInit {
            sandbox: self.subject.sandbox.clone(),
            channel: ChannelId::new(Uuid::new_v4().simple().to_string()),
            target: self.subject.target.clone(),
            requester: self.state.id.clone(),
            capabilities: I::OFFERED,
            session: Some((home.session.clone(), home.generation)),
            command: self.subject.told(),
        };
        let call = PeerCall {
            init,
            headers: errand.headers(),
            buffered: Arc::clone(&self.state.buffered),
        };
        let (mut end, opened) = self.state.peers.open(url, self.lane, call).await?;
        end.count_oversize(&self.state.metrics.oversize);
        Ok((end, opened))
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

    fn join<I: Freight>(&self, claim: Claim, session: &Session) -> (RpcEnd<I>, Opened) {
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

/// Whether the answer of another gateway means that a third one is the place to ask.
const fn is_elsewhere(reason: Reason) -> bool {
    matches!(reason, Reason::StaleOwner | Reason::GatewayDraining)
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
        let config = Config {
            insecure_dev: true,
            ..Config::default()
        };
        let peering = config.peering(&config.protection().unwrap()).unwrap();
        let seat = Memory::new(MemorySettings::default()).seat(config.replica());
        let state = Arc::new(State::new(config, Arc::new(seat), peering));
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
            way: Way::anywhere(&HeaderMap::new(), None),
            leash,
            place,
        }
    }
}
