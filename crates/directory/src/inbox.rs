//! What waits to be heard by a seat.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tidegate_lifecycle::id::SessionId;
use tokio::sync::Notify;

use crate::Event;

/// Events of one seat, at most one for each of its sessions: a later one says all that counts.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    waiting: Mutex<BTreeMap<SessionId, Event>>,
    bell: Notify,
}

impl Inbox {
    pub(crate) fn push(&self, event: Event) {
        let session = match &event {
            Event::Ended { session, .. }
            | Event::Drained { session }
            | Event::Forgotten { session } => session.clone(),
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.insert(session, event);
        drop(waiting);
        self.bell.notify_one();
    }

    /// Waits for an event. One caller at a time.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn next(&self) -> Event {
        loop {
            if let Some((_, event)) = self.pop() {
                return event;
            }
            self.bell.notified().await;
        }
    }

    fn pop(&self) -> Option<(SessionId, Event)> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.pop_first()
    }
}
