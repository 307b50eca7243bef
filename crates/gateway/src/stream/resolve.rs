//! Which session serves an open, and how long it may wait for one.

use std::sync::Arc;

use tidegate_directory::{DirectoryError, Knowledge};
use tidegate_lifecycle::id::{SandboxName, SessionId};
use tidegate_lifecycle::{End, Reason};
use tokio::time::{Instant, sleep_until};

use crate::config::UnknownSandboxes;
use crate::session::Session;
use crate::state::State;

/// Finds a live session of the sandbox other than `except`, and waits for it until `until` if the
/// sandbox is known.
///
/// # Errors
///
/// SANDBOX_NOT_FOUND at once when nobody knows it, or as soon as it is deleted; NO_SESSION at
/// `until`; DIRECTORY_UNAVAILABLE.
pub(super) async fn session(
    state: &State,
    sandbox: &SandboxName,
    except: Option<&SessionId>,
    until: Instant,
) -> Result<Arc<Session>, End> {
    let find = || {
        state
            .sessions
            .live(sandbox)
            .filter(|session| Some(&session.id) != except)
    };
    if let Some(session) = find() {
        return Ok(session);
    }
    let mut ours = state.sessions.watch(sandbox);
    let news = state.directory.watch(sandbox).await;
    let mut news = news.map_err(|error| unavailable(state, &error))?;
    loop {
        if let Some(session) = find() {
            return Ok(session);
        }
        check_known(state, sandbox).await?;
        tokio::select! {
            () = ours.changed() => {}
            () = news.changed() => {}
            () = sleep_until(until) => return Err(no_session(state, sandbox)),
        }
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

fn no_session(state: &State, sandbox: &SandboxName) -> End {
    let message = format!(
        "no supervisor of sandbox {sandbox} is connected, and none came within {:?}",
        state.times.session_wait
    );
    state
        .end(Reason::NoSession, message)
        .retry_after(state.times.session_wait)
}
