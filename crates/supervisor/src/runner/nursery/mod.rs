//! Where launchers and reapers come from: a small process that forks.
//!
//! ```text
//!  supervisor ──who, its socket, its cgroup──▶ nursery
//!      ║                                          ┆ clone
//!      ╚══ launcher or reaper ◀┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┘
//! ```
//!
//! What is born there is a child of the supervisor's, which alone knows how it ends. It could be
//! started as a program instead. But the start of one costs as much as the command's own, a
//! supervisor's thread stands still meanwhile, and a process that enters a cgroup later than at its
//! birth waits until every processor has passed a quiet point of the kernel: 10 ms and more.

mod fork;
pub(super) mod program;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::Semaphore;

pub(super) use self::fork::{Forked, Parent, fork};
use super::attendant::Attendant;
use super::child::{Child, Children};
use super::door::Role;

/// How many births may wait: their messages fit in any socket.
const WAITING: usize = 32;

/// How long a birth may take before the nursery is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// Who is born.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Becomes the command.
    Launcher,
    /// The root of a command's process tree.
    Reaper,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Launcher, Self::Reaper];

    fn decode(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte)).copied()
    }
}

/// Whether nobody was born because the nursery was dying: with the next one it may be tried again.
pub(super) fn has_died(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        // The last two say that it left something unread.
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
    )
}

/// The nursery of this supervisor.
#[derive(Debug)]
pub(super) struct Nursery {
    process: Attendant,
    waiting: Semaphore,
}

impl Nursery {
    /// One that will be there for the first command.
    pub(super) fn new(binary: PathBuf, children: Children) -> Self {
        Self {
            process: Attendant::new(binary, Role::Nursery, None, children),
            waiting: Semaphore::new(WAITING),
        }
    }

    /// Has a process born that listens on `socket`, in `cgroup` if there is one. What it says first
    /// is its id: `ours` is the other end of `socket`.
    ///
    /// # Cancel safety
    ///
    /// Not safe: the process would be nobody's. Whoever calls sees it through.
    pub(super) async fn bear(
        &self,
        kind: Kind,
        socket: OwnedFd,
        cgroup: Option<BorrowedFd<'_>>,
        ours: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Child> {
        let place = self.waiting.acquire().await;
        let birth = self.process.children().expect();
        let mut files = vec![socket.as_fd()];
        files.extend(cgroup);
        let nursery = self.process.tell(&[kind as u8], &files)?;
        // Ours would hide that nobody holds the other.
        drop(socket);
        let said = tokio::time::timeout(PATIENCE, ours.read_i32_le()).await;
        drop(place);
        let said = said.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        match said.inspect_err(|_| self.process.replace(nursery))? {
            id @ 1.. => birth.adopt(Pid::from_raw(id).ok_or(io::ErrorKind::InvalidData)?),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }

    /// Lets the nursery go, when nobody will be born any more.
    pub(super) async fn stop(&self) {
        self.process.stop().await;
    }
}
