//! Runs commands: the part of the supervisor that knows processes, and nothing of streams.
//!
//! ```text
//!                    ┌────────── Running ──────────┐
//!  caller ──────────▶│ Stdin ─▶ pipe ─▶            │
//!         ◀──────────│ Events ◀─ Source ◀─ pipes ◀─│─ launcher, then command ─ descendants
//!         ──────────▶│ Control ─▶ Minder ─▶ Tree ─▶│
//!                    └─────────────────────────────┘
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | `config`, `error` | how commands are run, and why one is not |
//! | `door`, `attendant` | our own binary as a small program |
//! | `nursery`, `launch` | where a process comes from, and how it becomes the command |
//! | `scope` | the tree of a command, and how all of it is made to end |
//! | `minder`, `kill`, `progress` | one command's life: its time, its signals, its end |
//! | `streams`, `stdin`, `output`, `terminal` | what it reads and writes |
//! | `child`, `orphans` | who is reaped by whom |
//!
//! Three rules hold everywhere. Nothing is read ahead of whoever wants it. A command's input ends
//! when its caller says so, and not because something was dropped or has crashed. Whoever may still
//! be signalled has not been reaped.

mod attendant;
mod child;
mod config;
mod door;
mod environment;
mod error;
mod events;
mod inner;
mod kill;
mod launch;
mod minder;
mod nursery;
mod orphans;
mod output;
mod progress;
mod ready;
mod running;
mod scope;
mod socket;
mod start;
mod stdin;
mod streams;
mod terminal;

use std::io;
use std::sync::Arc;

use tidegate_lifecycle::exec::{Command, KillScope};
use tokio::sync::oneshot;

use self::inner::{Inner, Means};
use self::start::Start;
use self::streams::Input;

pub use self::config::{RunnerConfig, Scope};
pub use self::door::enter;
pub use self::error::StartError;
pub use self::events::{Event, Events};
pub use self::kill::Why;
pub use self::running::{Control, Running};
pub use self::stdin::Stdin;

/// Runs commands. Clones share everything.
#[derive(Clone, Debug)]
pub struct Runner(Arc<Inner>);

impl Runner {
    /// Looks around: how descendants can be found here, and what a dead supervisor has left
    /// running, which is killed.
    ///
    /// # Errors
    ///
    /// If this program has no door (see [`enter`]), or if cgroups are demanded and cannot be used.
    pub fn new(config: RunnerConfig) -> io::Result<Self> {
        Ok(Self(Arc::new(Inner::new(config)?)))
    }

    /// How far the end of a command reaches.
    pub fn scope(&self) -> KillScope {
        self.0.scope()
    }

    /// How many commands run.
    pub fn running(&self) -> usize {
        self.0.config.exec_limit - self.0.places.available_permits()
    }

    /// Starts a command. It runs when this returns.
    ///
    /// Its tasks run on the runtime of whoever calls.
    ///
    /// # Errors
    ///
    /// Nothing of the command has run then.
    ///
    /// # Cancel safety
    ///
    /// A command whose start nobody waits for any more is ended.
    pub async fn start(&self, command: Command) -> Result<Running, StartError> {
        self.start_with(command, Input::Open).await
    }

    /// As [`start`](Self::start), for a command that will be told nothing: its input is over before
    /// it begins. A terminal's is not, whoever writes to it.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    ///
    /// As [`start`](Self::start).
    pub async fn start_without_input(&self, command: Command) -> Result<Running, StartError> {
        self.start_with(command, Input::Empty).await
    }

    async fn start_with(&self, command: Command, input: Input) -> Result<Running, StartError> {
        command.check(&self.0.config.limits)?;
        if self.0.stop.is_cancelled() {
            return Err(StartError::Stopping);
        }
        let limit = self.0.config.exec_limit;
        let place = Arc::clone(&self.0.places).try_acquire_owned();
        let place = place.map_err(|_| StartError::Limit { limit })?;
        orphans::adopt(&self.0);
        let (tell, told) = oneshot::channel();
        let start = Start {
            inner: Arc::clone(&self.0),
            command,
            input,
            place,
        };
        self.0.minders.spawn(start.run(tell));
        // The task is gone if its runtime is.
        told.await.unwrap_or(Err(StartError::Stopping))
    }

    /// Ends all commands and all of their descendants, and starts no more. What commands have left
    /// behind that ended by themselves lives on.
    pub async fn stop_all(&self) {
        self.0.stop.cancel();
        self.0.minders.close();
        self.0.minders.wait().await;
        self.0.drains.stop().await;
        self.0.nursery.stop().await;
        if let Means::Cgroups { watcher, .. } = &self.0.means {
            watcher.stop().await;
        }
    }
}
