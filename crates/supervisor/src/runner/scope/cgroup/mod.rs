//! The scope with cgroups: a command's tree is what is in a cgroup of its own.
//!
//! ```text
//!  our own cgroup
//!  └── tidegate-4b1f…      one for each supervisor, locked while it lives
//!      ├── exec-17         a command that runs
//!      └── exec-9  (ended) what a command has left behind when it ended by itself
//! ```

mod group;
mod home;
mod mount;
pub(in crate::runner) mod probe;

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use rustix::process::Signal;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest};
use tokio::time::{Instant, sleep_until};

use self::group::Group;
pub(in crate::runner) use self::home::{Home, end_abandoned};
use super::{AFTER_KILL, Manner, Step};
use crate::runner::child::Child;
use crate::runner::nursery::{Kind, Nursery};
use crate::runner::ready;

/// The members of a cgroup.
#[derive(Debug)]
pub(in crate::runner) struct Tree {
    child: Child,
    group: Group,
    /// Becomes ready when the cgroup loses its last member. Most commands leave nobody to wait for:
    /// there is one when a tree is being ended.
    events: Option<AsyncFd<OwnedFd>>,
    home: Arc<Home>,
    ended: bool,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// TERM was sent.
    Asking {
        until: Instant,
    },
    /// The cgroup was killed.
    Killing {
        until: Instant,
    },
}

impl Tree {
    /// Starts a launcher that listens on `launcher`, the other end of `ours`.
    pub(in crate::runner) async fn start(
        nursery: &Nursery,
        home: &Arc<Home>,
        launcher: OwnedFd,
        ours: &mut (impl AsyncRead + Unpin),
    ) -> io::Result<Self> {
        let group = home.create_exec()?;
        let started = async {
            let place = group.open()?;
            let child = nursery.bear(Kind::Launcher, launcher, Some(place.as_fd()), ours);
            child.await
        };
        match started.await {
            Ok(child) => Ok(Self {
                child,
                group,
                events: None,
                home: Arc::clone(home),
                ended: false,
                phase: Phase::Running,
            }),
            Err(error) => {
                group.remove();
                Err(error)
            }
        }
    }

    pub(super) async fn next(&mut self) -> Step {
        loop {
            if self.ended && self.phase != Phase::Running && !self.group.is_populated() {
                return self.gone(0);
            }
            let until = match self.phase {
                Phase::Running => None,
                Phase::Asking { until } | Phase::Killing { until } => Some(until),
            };
            tokio::select! {
                ending = self.child.ended(), if !self.ended => {
                    self.ended = true;
                    // An error says that there is no such child: nobody will ever know more.
                    let unknown = crate::runner::child::Ending::Signal(Signal::KILL.as_raw());
                    return Step::Ended(ending.unwrap_or(unknown));
                }
                () = changed(self.events.as_ref()), if self.ended => {}
                () = sleep(until), if until.is_some() => {
                    if let Some(step) = self.late() {
                        return step;
                    }
                }
            }
        }
    }

    /// The time of a phase is over.
    fn late(&mut self) -> Option<Step> {
        if let Phase::Killing { .. } = self.phase {
            let leftover = self.group.members();
            return Some(self.gone(leftover));
        }
        self.group.kill();
        // It may not have come to the cgroup yet.
        self.child.signal(Signal::KILL);
        self.phase = Phase::Killing {
            until: Instant::now() + AFTER_KILL,
        };
        None
    }

    /// Waits for one that could not be killed, if it is such a one.
    pub(super) async fn bury(mut self) {
        if !self.ended {
            let _ = self.child.ended().await;
            self.child.reap();
            self.group.remove();
        }
    }

    fn gone(&mut self, leftover: u32) -> Step {
        self.child.reap();
        self.group.remove();
        Step::Gone { leftover }
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.child.signal_group(signal);
    }

    pub(super) fn end(&mut self, manner: Manner) {
        let events = self.group.events();
        // Without it the members have all of their time, and are looked for when that is over.
        self.events = events
            .and_then(|events| ready::watch(events.into(), Interest::PRIORITY))
            .inspect_err(|error| tracing::debug!(%error, "a cgroup cannot be watched"))
            .ok();
        if !manner.grace.is_zero() {
            for signal in manner.signals() {
                self.signal(*signal);
            }
        }
        self.phase = Phase::Asking {
            until: Instant::now() + manner.grace,
        };
    }

    pub(super) fn leave(mut self) {
        self.child.reap();
        if self.group.remove_empty() {
            self.home.tidy();
        } else {
            self.group.mark_ended();
            self.home.left_behind(self.group);
        }
    }
}

async fn changed(events: Option<&AsyncFd<OwnedFd>>) {
    let Some(events) = events else {
        return std::future::pending().await;
    };
    if let Ok(mut changed) = events.ready(Interest::PRIORITY).await {
        changed.clear_ready();
    }
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => sleep_until(until).await,
        None => std::future::pending().await,
    }
}
