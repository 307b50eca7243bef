//! The tie between a stream and its relay at the supervisor.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_bridge::Outcome;
use tidegate_lifecycle::id::{ChannelId, HopName};
use tidegate_lifecycle::relay::Side;
use tidegate_lifecycle::{End, Origin, Reason};

use super::Session;

/// Holds the relay that a stream has asked for last. When the stream has ended its supervisor is
/// told, unless it knows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Leash(Arc<Mutex<Option<Tie>>>);

#[derive(Debug)]
struct Tie {
    session: Arc<Session>,
    channel: ChannelId,
    /// Its supervisor was asked to end what it leads to.
    asked: bool,
    farewell: Option<End>,
}

impl Leash {
    /// Ties the stream to `channel`, and unties it from the one before, whose supervisor refused it.
    pub(crate) fn hold(&self, session: &Arc<Session>, channel: ChannelId) {
        // Until the stream says how it ended, it did not: its task died.
        let message = "the gateway lost the stream to a fault of its own";
        let died = End::new(Origin::Gateway, Reason::InternalError, message);
        let tie = Tie {
            session: Arc::clone(session),
            channel,
            asked: false,
            farewell: Some(died),
        };
        if let Some(mut old) = self.replace(Some(tie)) {
            old.farewell = None;
        }
    }

    /// Asks the supervisor to end what the relay leads to; the stream is not over yet. Says whether
    /// that can be asked, and was not before.
    pub(crate) fn ask(&self, end: &End) -> bool {
        let mut held = self.lock();
        let Some(tie) = held
            .as_mut()
            .filter(|tie| !tie.asked && tie.session.ends_commands())
        else {
            return false;
        };
        tie.asked = true;
        let end = end.clone().on(tie.channel.clone());
        tie.session.ask_to_end(tie.channel.clone(), end);
        true
    }

    /// The stream has ended. `hop` is this gateway's name on the path.
    pub(crate) fn let_go(&self, outcome: &Outcome, hop: &HopName) {
        if let Some(mut tie) = self.replace(None) {
            let knows = outcome.ended_by == Some(Side::Upstream);
            let end = outcome.end.as_deref().filter(|_| !knows);
            tie.farewell = end.map(|end| end.seen_from_afar().via(hop).on(tie.channel.clone()));
        }
    }

    fn replace(&self, tie: Option<Tie>) -> Option<Tie> {
        std::mem::replace(&mut *self.lock(), tie)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tie>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Tie {
    fn drop(&mut self) {
        self.session
            .let_go(self.channel.clone(), self.farewell.take());
    }
}
