//! The process that outlives a killed supervisor where cgroups are the scope: they would live on.
//!
//! It holds one end of a socket and waits for the other to disappear. It also holds the standard
//! inputs of the commands that run: a filter whose input ended because the supervisor was killed
//! would take half of it for the whole.

pub(in crate::runner) mod program;

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::process::Signal;

use crate::runner::child::{Child, Children};
use crate::runner::door::{self, Role};

/// The watcher of this supervisor, started with the first command, and again if it dies.
#[derive(Debug)]
pub(in crate::runner) struct Watcher {
    binary: PathBuf,
    home: PathBuf,
    children: Children,
    running: Mutex<Option<Running>>,
    next: AtomicU64,
}

#[derive(Debug)]
struct Running {
    child: Child,
    socket: OwnedFd,
}

impl Watcher {
    /// One that will watch the cgroups in `home`.
    pub(in crate::runner) fn new(binary: PathBuf, home: &Path, children: Children) -> Self {
        Self {
            binary,
            home: home.to_owned(),
            children,
            running: Mutex::default(),
            next: AtomicU64::new(0),
        }
    }

    /// Sees to it that the watcher lives, and gives it a command's input to hold, under the number
    /// that is returned.
    pub(in crate::runner) fn watch(&self, input: Option<BorrowedFd<'_>>) -> io::Result<u64> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut running = self.lock();
        let dead = running.as_mut().is_none_or(|it| it.child.reap().is_some());
        if dead {
            *running = Some(self.start()?);
        }
        if let (Some(running), Some(input)) = (running.as_ref(), input) {
            crate::runner::socket::send(&running.socket, &number.to_le_bytes(), &[input])?;
        }
        Ok(number)
    }

    /// Takes a command's input out of the watcher's hands.
    pub(in crate::runner) fn release(&self, id: u64) {
        let mut running = self.lock();
        let Some(alive) = running.as_mut() else {
            return;
        };
        let flags = SendFlags::NOSIGNAL;
        if send(alive.socket.as_fd(), &id.to_le_bytes(), flags).is_err() {
            // It is stopped or dead. An input that never ends is worse than no watcher.
            alive.child.signal(Signal::KILL);
            *running = None;
        }
    }

    /// Lets the watcher go, when there is nothing left to watch.
    pub(in crate::runner) async fn stop(&self) {
        let running = self.lock().take();
        if let Some(Running { mut child, socket }) = running {
            drop(socket);
            let _ = child.ended().await;
            child.reap();
        }
    }

    fn start(&self) -> io::Result<Running> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let home = self.home.as_os_str().to_owned();
        let mut command = door::command(&self.binary, Role::Watcher, Some(home), theirs);
        let child = self.children.spawn(&mut command)?;
        Ok(Running {
            child,
            socket: ours,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
