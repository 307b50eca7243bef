//! A session as the rest of the gateway sees it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use tidegate_lifecycle::id::{ChannelId, Generation, InstanceId, SandboxName, SessionId};
use tidegate_lifecycle::{Capabilities, Capability, End};
use tokio::sync::{Notify, mpsc};

use super::Wish;

/// Wishes that may wait for a session's task. Those who wish for more wait themselves.
const WISHES: usize = 64;

/// Wishes on their way. They are boxed, since a queue has room for many from its beginning.
pub(super) type Wishes = mpsc::Receiver<Box<Wish>>;

/// A supervisor's session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) sandbox: SandboxName,
    pub(crate) instance: InstanceId,
    pub(crate) generation: Generation,
    /// What both ends understand.
    pub(crate) agreed: Capabilities,
    pub(crate) since: SystemTime,
    wishes: mpsc::Sender<Box<Wish>>,
    notes: Mutex<Vec<Note>>,
    ending: OnceLock<Ending>,
    /// Rung for notes and for an ending.
    pub(super) bell: Notify,
    relays: AtomicUsize,
}

/// What a stream leaves for the session's task.
#[derive(Debug)]
pub(super) enum Note {
    /// The relay is nobody's any more; its supervisor is told this, if there is something.
    LetGo(ChannelId, Option<End>),
    /// The supervisor is told this, and the relay goes on.
    AskToEnd(ChannelId, End),
    /// This gateway leaves: the supervisor is to move within this time.
    Leave(Duration, Arc<[String]>),
    /// The supervisor has had time to move.
    Dismiss,
}

/// Why this gateway ends a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// A newer session took over, of this supervisor process.
    Superseded(InstanceId),
    /// An operator kicked it. The supervisor comes back.
    Kicked,
    /// An operator deleted the sandbox. The supervisor does not come back.
    Deleted,
    /// The gateway shuts down.
    Draining,
}

/// What makes a [`Session`].
pub(super) struct Facts {
    pub(super) id: SessionId,
    pub(super) sandbox: SandboxName,
    pub(super) instance: InstanceId,
    pub(super) generation: Generation,
    pub(super) agreed: Capabilities,
}

impl Session {
    pub(super) fn new(facts: Facts) -> (Self, Wishes) {
        let Facts {
            id,
            sandbox,
            instance,
            generation,
            agreed,
        } = facts;
        let (wishes, receiver) = mpsc::channel(WISHES);
        let session = Self {
            id,
            sandbox,
            instance,
            generation,
            agreed,
            since: SystemTime::now(),
            wishes,
            notes: Mutex::default(),
            ending: OnceLock::new(),
            bell: Notify::new(),
            relays: AtomicUsize::new(0),
        };
        (session, receiver)
    }

    /// Asks for a relay. A session that is over drops the wish, which says that another is
    /// the one to ask.
    ///
    /// # Cancel safety
    ///
    /// The wish is lost, or it is not.
    pub(crate) async fn ask(&self, wish: Wish) {
        let _ = self.wishes.send(Box::new(wish)).await;
    }

    /// A relay is nobody's any more. Its supervisor is told `farewell`, if there is one.
    ///
    /// Never waits: each relay leaves one note, so that their number is bounded as the relays' is.
    pub(crate) fn let_go(&self, channel: ChannelId, farewell: Option<End>) {
        self.note(Note::LetGo(channel, farewell));
    }

    /// Whether its supervisor can be asked to end a command, and then tells of its exit.
    pub(crate) fn ends_commands(&self) -> bool {
        [Capability::RelayAbort, Capability::ExecTree]
            .into_iter()
            .all(|one| self.agreed.has(one))
    }

    /// Asks the supervisor to end the command behind a relay, which goes on. Once for each relay.
    pub(super) fn ask_to_end(&self, channel: ChannelId, end: End) {
        self.note(Note::AskToEnd(channel, end));
    }

    /// This gateway leaves, and ends what is left after `deadline`. A supervisor that understands is
    /// asked to open a session elsewhere, at one of `alternatives` for instance; the session of one
    /// that does not ends as soon as it carries nothing.
    pub(crate) fn leave(&self, deadline: Duration, alternatives: Arc<[String]>) {
        self.note(Note::Leave(deadline, alternatives));
    }

    /// Its supervisor was asked to move and has had time for it: it ends as soon as it carries nothing.
    pub(crate) fn dismiss(&self) {
        self.note(Note::Dismiss);
    }

    /// Whether its supervisor can be asked to move.
    pub(crate) fn moves(&self) -> bool {
        self.agreed.has(Capability::SessionDrain)
    }

    /// Ends the session. The first reason counts.
    pub(crate) fn end(&self, ending: Ending) {
        if self.ending.set(ending).is_ok() {
            self.bell.notify_one();
        }
    }

    /// How many relays it carries.
    pub(crate) fn relays(&self) -> usize {
        self.relays.load(Ordering::Relaxed)
    }

    pub(super) fn set_relays(&self, count: usize) {
        self.relays.store(count, Ordering::Relaxed);
    }

    pub(super) fn ending(&self) -> Option<&Ending> {
        self.ending.get()
    }

    pub(super) fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut *self.notes())
    }

    fn note(&self, note: Note) {
        self.notes().push(note);
        self.bell.notify_one();
    }

    fn notes(&self) -> MutexGuard<'_, Vec<Note>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
