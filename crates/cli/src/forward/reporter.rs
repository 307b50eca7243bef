//! Tells what happens, in the order in which it did, without ever holding a connection up for long.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidegate_client::{End, SandboxName};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::event::{Event, To};
use super::link::{Concern, Link};
use crate::failure::Failure;
use crate::output::Console;

/// Events that may wait for a reader who is slow. When they are too many, connections wait.
const WAITING: usize = 1024;
/// How long the last events may take to be read when the forward ends.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Tells events, and knows whether the way is there.
#[derive(Debug)]
pub(super) struct Reporter {
    sandbox: SandboxName,
    /// Whether people read it, who do not want to know everything.
    people: bool,
    verbose: bool,
    events: mpsc::Sender<Event>,
    link: Mutex<Link>,
}

/// The thread that prints. It may be blocked by whoever does not read, and nothing else is.
#[derive(Debug)]
pub(super) struct Printing(JoinSet<Result<(), Failure>>);

impl Reporter {
    /// Begins to print for `console`.
    pub(super) fn start(sandbox: SandboxName, verbose: bool, console: Console) -> (Self, Printing) {
        let (events, waiting) = mpsc::channel(WAITING);
        let reporter = Self {
            sandbox: sandbox.clone(),
            people: !console.is_json(),
            verbose,
            events,
            link: Mutex::default(),
        };
        let mut thread = JoinSet::new();
        thread.spawn_blocking(move || print(waiting, &sandbox, verbose, &console));
        (reporter, Printing(thread))
    }

    /// Tells an event.
    pub(super) async fn tell(&self, event: Event) {
        if self.people && event.text(&self.sandbox, self.verbose).is_none() {
            return;
        }
        // When nobody prints any more, the forward is about to end.
        let _ = self.events.send(event).await;
    }

    /// Something ended or failed: tells it if the way is lost by that. Says what it concerns.
    pub(super) async fn failed(&self, end: &End) -> Concern {
        let concern = Concern::of(end.reason);
        let place = self.events.reserve().await;
        // Not before there is a place: else news could overtake each other.
        if self.link().failed(concern)
            && let Ok(place) = place
        {
            place.send(Event::Reconnecting { end: end.clone() });
        }
        concern
    }

    /// The way is there: tells it if it was lost.
    pub(super) async fn served(&self) {
        if self.is_up() {
            return;
        }
        let place = self.events.reserve().await;
        if self.link().served()
            && let Ok(place) = place
        {
            place.send(Event::Restored);
        }
    }

    /// Whether the way is there, as far as is known.
    pub(super) fn is_up(&self) -> bool {
        *self.link() == Link::Up
    }

    fn link(&self) -> MutexGuard<'_, Link> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Printing {
    /// Waits until it cannot go on, because nobody reads or nobody has anything to tell.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(super) async fn ended(&mut self) -> Result<(), Failure> {
        match self.0.join_next().await {
            Some(Ok(printed)) => printed,
            // It panicked, and that was printed.
            Some(Err(_)) => Err(Failure::Said),
            None => std::future::pending().await,
        }
    }

    /// Lets what was told be printed, if somebody reads it.
    pub(super) async fn finish(mut self) {
        let _ = tokio::time::timeout(LAST_WORDS, self.0.join_next()).await;
    }
}

fn print(
    mut waiting: mpsc::Receiver<Event>,
    sandbox: &SandboxName,
    verbose: bool,
    console: &Console,
) -> Result<(), Failure> {
    while let Some(event) = waiting.blocking_recv() {
        if console.is_json() {
            console.json(&event.json())?;
            continue;
        }
        match event.text(sandbox, verbose) {
            Some((To::Stdout, line)) => console.line(line)?,
            Some((To::Stderr, line)) => console.note(line),
            None => {}
        }
    }
    Ok(())
}
