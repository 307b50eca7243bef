//! Where a stream's path leads: to a session of this gateway, or to another gateway that has one.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_directory::{DirectoryError, Home, Knowledge, Watch};
use tidegate_lifecycle::id::{SandboxName, SessionId};
use tidegate_lifecycle::{End, Origin, Reason};
use tokio::time::{Instant, sleep_until};

use crate::config::UnknownSandboxes;
use crate::session::Session;
use crate::state::State;

/// From the first try of a home that cannot be reached to the next.
const AGAIN: Duration = Duration::from_millis(250);
/// The longest time between two tries.
const AGAIN_AT_MOST: Duration = Duration::from_secs(2);

/// What leads to the sandbox.
#[derive(Debug)]
pub(super) enum Route {
    /// A session of this gateway.
    Local(Arc<Session>),
    /// Another gateway, at that URL.
    Peer(Box<Home>, String),
}

/// Looks for a route, and for another one where that led nowhere, until its time is over.
///
/// A session of this gateway comes first, then the homes in the directory's order; and if there is
/// none of either that has not just failed, whichever comes.
pub(super) struct Search<'a> {
    state: &'a State,
    sandbox: &'a SandboxName,
    until: Instant,
    /// A session of this gateway that turned out to be over.
    stale: Option<SessionId>,
    tried: HashMap<SessionId, Tried>,
    /// What the last home that led nowhere said.
    last: Option<End>,
    news: Option<News>,
}

/// A home that led nowhere.
struct Tried {
    again: Instant,
    pause: Duration,
}

/// Wakes whoever waits for a session.
struct News {
    ours: Watch,
    theirs: Watch,
}

impl<'a> Search<'a> {
    pub(super) fn new(state: &'a State, sandbox: &'a SandboxName) -> Self {
        Self {
            state,
            sandbox,
            until: Instant::now() + state.times.session_wait,
            stale: None,
            tried: HashMap::new(),
            last: None,
            news: None,
        }
    }

    /// The next route to try.
    ///
    /// # Errors
    ///
    /// SANDBOX_NOT_FOUND at once when nobody knows the sandbox, or as soon as it is deleted;
    /// PEER_UNCONFIGURED when its homes tell no address; DIRECTORY_UNAVAILABLE; when time is over,
    /// what the last home said, or NO_SESSION.
    pub(super) async fn next(&mut self) -> Result<Route, End> {
        if let Some(session) = self.local() {
            return Ok(Route::Local(session));
        }
        if self.news.is_none() {
            self.news = Some(self.watch().await?);
        }
        loop {
            if let Some(session) = self.local() {
                return Ok(Route::Local(session));
            }
            let homes = self.homes().await?;
            if let Some(route) = self.pick(&homes)? {
                return Ok(route);
            }
            if homes.is_empty() {
                check_known(self.state, self.sandbox).await?;
            }
            if Instant::now() >= self.until {
                return Err(self.over());
            }
            self.wait(&homes).await;
        }
    }

    /// The session of this gateway is over.
    pub(super) fn departed(&mut self, session: &Session) {
        self.stale = Some(session.id.clone());
    }

    /// The home led nowhere, and said so.
    pub(super) fn failed(&mut self, home: &Home, end: End) {
        let now = Instant::now();
        let tried = self.tried.entry(home.session.clone()).or_insert(Tried {
            again: now,
            pause: AGAIN,
        });
        tried.again = now + tried.pause;
        tried.pause = (tried.pause * 2).min(AGAIN_AT_MOST);
        // That a gateway has no session is said between gateways only.
        self.last = Some(end).filter(|end| end.reason != Reason::StaleOwner);
    }

    fn local(&self) -> Option<Arc<Session>> {
        let live = self.state.sessions.live(self.sandbox)?;
        (self.stale.as_ref() != Some(&live.id)).then_some(live)
    }

    async fn watch(&self) -> Result<News, End> {
        let ours = self.state.sessions.watch(self.sandbox);
        let theirs = self.state.directory.watch(self.sandbox).await;
        let theirs = theirs.map_err(|error| unavailable(self.state, &error))?;
        Ok(News { ours, theirs })
    }

    /// The homes at other gateways.
    async fn homes(&self) -> Result<Vec<Home>, End> {
        let homes = self.state.directory.homes(self.sandbox).await;
        let mut homes = homes.map_err(|error| unavailable(self.state, &error))?;
        homes.retain(|home| home.gateway != self.state.id);
        Ok(homes)
    }

    /// The first home that is worth a try now.
    fn pick(&self, homes: &[Home]) -> Result<Option<Route>, End> {
        let now = Instant::now();
        let is_due = |home: &&Home| {
            let tried = self.tried.get(&home.session);
            tried.is_none_or(|tried| tried.again <= now)
        };
        let mut reachable = homes.iter().filter_map(|home| {
            let url = home.peer_url.clone()?;
            Some((home, url))
        });
        if let Some((home, url)) = reachable.clone().find(|(home, _)| is_due(home)) {
            return Ok(Some(Route::Peer(Box::new(home.clone()), url)));
        }
        match homes.first() {
            Some(home) if reachable.next().is_none() => Err(unconfigured(self.sandbox, home)),
            Some(_) | None => Ok(None),
        }
    }

    /// Waits for news, for the time of the next try, or for the end of all of it.
    async fn wait(&mut self, homes: &[Home]) {
        let tries = homes
            .iter()
            .filter_map(|home| self.tried.get(&home.session));
        let next = tries.map(|tried| tried.again).min();
        let at = next.map_or(self.until, |next| next.min(self.until));
        let Some(News { ours, theirs }) = &mut self.news else {
            return;
        };
        tokio::select! {
            () = ours.changed() => {}
            () = theirs.changed() => {}
            () = sleep_until(at) => {}
        }
    }

    fn over(&mut self) -> End {
        self.last.take().unwrap_or_else(|| {
            let (sandbox, wait) = (self.sandbox, self.state.times.session_wait);
            let message = format!(
                "no supervisor of sandbox {sandbox} is connected, and none came within {wait:?}"
            );
            let end = self.state.end(Reason::NoSession, message);
            end.retry_after(wait)
        })
    }
}

/// Checks that a session of the sandbox is worth waiting for.
///
/// # Errors
///
/// SANDBOX_NOT_FOUND, DIRECTORY_UNAVAILABLE.
pub(crate) async fn check_known(state: &State, sandbox: &SandboxName) -> Result<(), End> {
    let knowledge = state.directory.known(sandbox).await;
    let knowledge = knowledge.map_err(|error| unavailable(state, &error))?;
    if is_worth_waiting(state.config.unknown_sandboxes, knowledge) {
        return Ok(());
    }
    let message = format!(
        "no sandbox is called {sandbox}: check the name, or start its supervisor, which makes it known"
    );
    Err(state.end(Reason::SandboxNotFound, message))
}

fn unavailable(state: &State, error: &DirectoryError) -> End {
    state.end(Reason::DirectoryUnavailable, error.to_string())
}

const fn is_worth_waiting(unknown: UnknownSandboxes, knowledge: Knowledge) -> bool {
    match (knowledge, unknown) {
        (Knowledge::Known | Knowledge::Unsure, _) => true,
        (Knowledge::Unknown, UnknownSandboxes::Wait) => true,
        (Knowledge::Unknown, UnknownSandboxes::Refuse) | (Knowledge::Deleted, _) => false,
    }
}

fn unconfigured(sandbox: &SandboxName, home: &Home) -> End {
    let gateway = &home.gateway;
    let message = format!(
        "the supervisor of sandbox {sandbox} is connected to the gateway {gateway}, which tells the \
         others no address: set `peer_url` there"
    );
    End::new(Origin::Peer, Reason::PeerUnconfigured, message)
}
