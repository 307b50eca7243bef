//! A process that this one has started and has to reap.

use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, WaitOptions, kill_process,
    kill_process_group, pidfd_open, pidfd_send_signal, waitid, waitpid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::ready;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// By itself, with a code.
    Code(i32),
    /// By a signal.
    Signal(i32),
}

impl Ending {
    fn of(status: &WaitIdStatus) -> Self {
        status.terminating_signal().map_or_else(
            || Self::Code(status.exit_status().unwrap_or_default()),
            Self::Signal,
        )
    }
}

/// The processes that somebody here waits for: nobody else may reap them.
#[derive(Clone, Debug, Default)]
pub(super) struct Children(Arc<Mutex<Family>>);

/// Who there is, and who is about to be.
#[derive(Debug, Default)]
pub(super) struct Family {
    pids: HashSet<i32>,
    births: BTreeSet<u64>,
    /// The number of the next birth.
    next: u64,
}

impl Family {
    /// Whether somebody here waits for a process.
    pub(super) fn contains(&self, pid: i32) -> bool {
        self.pids.contains(&pid)
    }

    /// The number of the next birth.
    pub(super) fn now(&self) -> u64 {
        self.next
    }

    /// Whether all births are over that had begun before number `then` was the next.
    pub(super) fn are_over(&self, then: u64) -> bool {
        self.births.first().is_none_or(|first| *first >= then)
    }
}

/// A child that somebody else starts for this process, and whose id is not known yet.
#[derive(Debug)]
pub(super) struct Birth {
    children: Children,
    number: u64,
}

impl Birth {
    /// Takes on the duty to reap the child.
    pub(super) fn adopt(self, pid: Pid) -> io::Result<Child> {
        let pidfd = watch(pid)?;
        self.children.lock().pids.insert(pid.as_raw_pid());
        Ok(Child::new(pid, pidfd, self.children.clone()))
    }
}

impl Drop for Birth {
    fn drop(&mut self) {
        self.children.lock().births.remove(&self.number);
    }
}

impl Children {
    /// Says that somebody else is about to start a child for this process.
    pub(super) fn expect(&self) -> Birth {
        let mut family = self.lock();
        let number = family.next;
        family.next += 1;
        family.births.insert(number);
        Birth {
            children: self.clone(),
            number,
        }
    }

    /// Starts a process and takes on the duty to reap it.
    pub(super) fn spawn(&self, command: &mut std::process::Command) -> io::Result<Child> {
        // Held across the start: a process that ends at once is known before it can be found.
        let mut family = self.lock();
        let pid = Pid::from_child(&command.spawn()?);
        family.pids.insert(pid.as_raw_pid());
        drop(family);
        let pidfd = watch(pid).inspect_err(|_| self.forget(pid))?;
        Ok(Child::new(pid, pidfd, self.clone()))
    }

    fn forget(&self, pid: Pid) {
        self.lock().pids.remove(&pid.as_raw_pid());
    }

    /// All of them. While the guard lives, none is started by [`Self::spawn`].
    pub(super) fn lock(&self) -> MutexGuard<'_, Family> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle of a child of ours that nobody has reaped. Without one nobody could end it later: it is
/// ended now.
fn watch(pid: Pid) -> io::Result<OwnedFd> {
    pidfd_open(pid, PidfdFlags::empty()).map_err(|error| {
        // An error of these says that it is gone already.
        let _ = kill_process(pid, Signal::KILL);
        let _ = waitpid(Some(pid), WaitOptions::empty());
        error.into()
    })
}

/// A process and the duty to reap it.
///
/// Until it is reaped its id, and that of the group it leads, mean nobody else.
#[derive(Debug)]
pub(super) struct Child {
    pid: Pid,
    pidfd: OwnedFd,
    ready: Option<AsyncFd<OwnedFd>>,
    reaped: bool,
    children: Children,
}

impl Child {
    fn new(pid: Pid, pidfd: OwnedFd, children: Children) -> Self {
        Self {
            pid,
            pidfd,
            ready: None,
            reaped: false,
            children,
        }
    }

    /// Waits for its end, and does not reap it.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub(super) async fn ended(&mut self) -> io::Result<Ending> {
        loop {
            if let Some(ending) = self.look(WaitIdOptions::NOWAIT)? {
                return Ok(ending);
            }
            let mut ready = self.ready()?.readable().await?;
            ready.clear_ready();
        }
    }

    /// Waits for its end on this thread, and reaps it: for what takes no longer than a start does.
    pub(super) fn wait_blocking(mut self) -> io::Result<i32> {
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), WaitIdOptions::EXITED)?;
        self.forget();
        Ok(status.and_then(|it| it.exit_status()).unwrap_or(-1))
    }

    /// Reaps it if it has ended.
    pub(super) fn reap(&mut self) -> Option<Ending> {
        let ending = self.look(WaitIdOptions::empty()).ok().flatten();
        if ending.is_some() {
            self.forget();
        }
        ending
    }

    /// Signals the group that it leads; itself if it does not lead one yet.
    pub(super) fn signal_group(&self, signal: Signal) {
        if !self.reaped && kill_process_group(self.pid, signal).is_err() {
            self.signal(signal);
        }
    }

    /// Signals it alone.
    pub(super) fn signal(&self, signal: Signal) {
        // It may have ended: then there is nothing to signal.
        let _ = pidfd_send_signal(&self.pidfd, signal);
    }

    fn look(&self, options: WaitIdOptions) -> io::Result<Option<Ending>> {
        let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::PidFd(self.pidfd.as_fd()), options)?;
        Ok(status.as_ref().map(Ending::of))
    }

    fn ready(&mut self) -> io::Result<&AsyncFd<OwnedFd>> {
        let ready = match self.ready.take() {
            Some(ready) => ready,
            None => ready::watch(self.pidfd.try_clone()?, Interest::READABLE)?,
        };
        Ok(self.ready.insert(ready))
    }

    fn forget(&mut self) {
        self.reaped = true;
        self.children.forget(self.pid);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped && self.reap().is_none() {
            // Given up: whoever reaps orphans takes it from here.
            self.forget();
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, test_kill_process};

    use super::*;

    /// Sets a limit of the whole process: the runner of these tests gives each its own.
    #[test]
    #[expect(clippy::zombie_processes, reason = "who adopts it reaps it")]
    fn a_child_that_no_handle_can_be_had_for_is_ended() {
        let child = std::process::Command::new("sleep")
            .arg("7061")
            .spawn()
            .unwrap();
        let (pid, children) = (Pid::from_child(&child), Children::default());
        let before = getrlimit(Resource::Nofile);
        let none = Rlimit {
            current: Some(0),
            ..before
        };
        setrlimit(Resource::Nofile, none).unwrap();
        let adopted = children.expect().adopt(pid);
        setrlimit(Resource::Nofile, before).unwrap();
        let error = adopted.unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::MFILE.raw_os_error()));
        assert_eq!(test_kill_process(pid), Err(Errno::SRCH), "it is gone");
        assert!(!children.lock().contains(pid.as_raw_pid()));
    }

    #[test]
    fn orphans_wait_for_births_that_had_begun() {
        let children = Children::default();
        let first = children.expect();
        let found = children.lock().now();
        let later = children.expect();
        assert!(!children.lock().are_over(found));
        drop(first);
        assert!(children.lock().are_over(found), "the later one began after");
        drop(later);
    }
}
