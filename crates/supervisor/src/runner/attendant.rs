//! A small program that serves all commands: started with the first, and again if it dies.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Signal;

use super::child::{Child, Children};
use super::door::{self, Role};
use super::socket;

/// One that lives, or will when it is needed.
///
/// It has one end of a socket; the end of that socket is its own.
#[derive(Debug)]
pub(super) struct Attendant {
    binary: PathBuf,
    role: Role,
    argument: Option<OsString>,
    children: Children,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    running: Option<Running>,
    /// How many there were before it.
    replaced: u64,
    /// Killed, and perhaps not dead yet.
    retired: Vec<Child>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    socket: OwnedFd,
}

impl State {
    fn retire(&mut self) {
        if let Some(running) = self.running.take() {
            running.child.signal(Signal::KILL);
            self.retired.push(running.child);
            self.replaced += 1;
        }
    }
}

impl Attendant {
    /// One that will play `role`.
    pub(super) fn new(
        binary: PathBuf,
        role: Role,
        argument: Option<OsString>,
        children: Children,
    ) -> Self {
        Self {
            binary,
            role,
            argument,
            children,
            state: Mutex::default(),
        }
    }

    /// Whose child it is.
    pub(super) fn children(&self) -> &Children {
        &self.children
    }

    /// Sees to it that it lives.
    pub(super) fn wake(&self) -> io::Result<()> {
        self.living().map(drop)
    }

    /// Sees to it that it lives, and sends it one message. Returns how many there were before it.
    pub(super) fn tell(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> io::Result<u64> {
        let mut state = self.living()?;
        if let Some(running) = &state.running {
            let sent = socket::send(running.socket.as_fd(), bytes, files);
            if let Err(error) = sent {
                // One that is busy has others to serve; one that is gone has not.
                if error.kind() != io::ErrorKind::WouldBlock {
                    state.retire();
                }
                return Err(error);
            }
        }
        Ok(state.replaced)
    }

    /// Sends one message if it lives. If it does not take that, it is killed: it is stopped or dead.
    pub(super) fn tell_living(&self, bytes: &[u8]) {
        let mut state = self.lock();
        let Some(alive) = &state.running else { return };
        if socket::send(alive.socket.as_fd(), bytes, &[]).is_err() {
            state.retire();
        }
    }

    /// Kills it, unless it is another by now: it does not do what it is there for.
    pub(super) fn replace(&self, replaced: u64) {
        let mut state = self.lock();
        if state.replaced == replaced {
            state.retire();
        }
    }

    /// Lets it go, when there is nothing left for it to do.
    pub(super) async fn stop(&self) {
        let State {
            running,
            mut retired,
            ..
        } = std::mem::take(&mut *self.lock());
        if let Some(Running { child, socket }) = running {
            drop(socket);
            retired.push(child);
        }
        for mut child in retired {
            // An error says that there is nothing to reap.
            let _ = child.ended().await;
            child.reap();
        }
    }

    fn living(&self) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.lock();
        state.retired.retain_mut(|it| it.reap().is_none());
        if let Some(running) = &mut state.running
            && running.child.reap().is_some()
        {
            state.running = None;
            state.replaced += 1;
        }
        if state.running.is_none() {
            state.running = Some(self.start()?);
        }
        Ok(state)
    }

    fn start(&self) -> io::Result<Running> {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::io::ioctl_fionbio(&ours, true)?;
        let mut command = door::command(&self.binary, self.role, self.argument.clone(), theirs);
        let child = self.children.spawn(&mut command)?;
        Ok(Running {
            child,
            socket: ours,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
