//! The process that outlives a killed supervisor where cgroups are the scope: they would live on.
//!
//! It holds one end of a socket and waits for the other to disappear. It also holds the standard
//! inputs of the commands that run: a filter whose input ended because the supervisor was killed
//! would take half of it for the whole.

pub(in crate::runner) mod program;

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::runner::attendant::Attendant;
use crate::runner::child::Children;
use crate::runner::door::Role;

/// The watcher of this supervisor.
#[derive(Debug)]
pub(in crate::runner) struct Watcher {
    process: Attendant,
    next: AtomicU64,
}

impl Watcher {
    /// One that will watch the cgroups in `home`.
    pub(in crate::runner) fn new(binary: PathBuf, home: &Path, children: Children) -> Self {
        let home = Some(home.as_os_str().to_owned());
        Self {
            process: Attendant::new(binary, Role::Watcher, home, children),
            next: AtomicU64::new(0),
        }
    }

    /// Sees to it that the watcher lives.
    pub(in crate::runner) fn watch(&self) -> io::Result<()> {
        self.process.wake()
    }

    /// As [`watch`](Self::watch), and gives it a command's input to hold, under the number that is
    /// returned.
    pub(in crate::runner) fn hold(&self, input: BorrowedFd<'_>) -> io::Result<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.process.tell(&number.to_le_bytes(), &[input])?;
        Ok(number)
    }

    /// Takes a command's input out of the watcher's hands. An input that never ends would be worse
    /// than no watcher.
    pub(in crate::runner) fn release(&self, number: u64) {
        self.process.tell_living(&number.to_le_bytes());
    }

    /// Lets the watcher go, when there is nothing left to watch.
    pub(in crate::runner) async fn stop(&self) {
        self.process.stop().await;
    }
}
