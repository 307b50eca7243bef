//! A command's process tree: how far it reaches, and how it is made to end.
//!
//! | scope | what a tree is | who ends it if the supervisor is killed |
//! |---|---|---|
//! | [`cgroup`] | the members of a cgroup | the [`watcher`], one process for all |
//! | [`reaper`] | the descendants of a process that is there for nothing else | that process |
//!
//! Both are used in the same way: [`Tree::next`] tells what happens, [`Tree::end`] begins the end,
//! [`Tree::leave`] lets those live on that the command has left behind.

pub(super) mod cgroup;
pub(super) mod reaper;
pub(super) mod watcher;

use std::time::Duration;

use rustix::process::Signal;
use tidegate_lifecycle::exec::KillScope;

use super::child::Ending;

/// How long a tree may take to disappear after KILL.
pub(super) const AFTER_KILL: Duration = Duration::from_secs(2);

/// What happens to a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The command has ended; others may live.
    Ended(Ending),
    /// The tree was made to end: this many are left that could not be.
    Gone { leftover: u32 },
}

/// How a tree is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Manner {
    /// Between TERM and KILL.
    pub(super) grace: Duration,
    /// The command's terminal goes away: HUP is sent, too.
    pub(super) hangup: bool,
}

impl Manner {
    /// At once.
    pub(super) const KILL: Self = Self {
        grace: Duration::ZERO,
        hangup: false,
    };

    /// What the command's group is sent. CONT comes last: who is stopped must hear of it.
    pub(super) fn signals(self) -> &'static [Signal] {
        if self.hangup {
            &[Signal::TERM, Signal::HUP, Signal::CONT]
        } else {
            &[Signal::TERM, Signal::CONT]
        }
    }
}

/// A command and its descendants.
#[derive(Debug)]
pub(super) enum Tree {
    /// The members of a cgroup.
    Cgroup(cgroup::Tree),
    /// The descendants of a reaper.
    Reaper(reaper::Tree),
}

impl Tree {
    /// Its name in results.
    pub(super) const fn scope(&self) -> KillScope {
        match self {
            Self::Cgroup(_) => KillScope::Cgroup,
            Self::Reaper(_) => KillScope::Reaper,
        }
    }

    /// Waits for what happens next: the command's end, once, and, after [`Tree::end`], that of the
    /// tree.
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub(super) async fn next(&mut self) -> Step {
        match self {
            Self::Cgroup(tree) => tree.next().await,
            Self::Reaper(tree) => tree.next().await,
        }
    }

    /// Signals the command's group.
    pub(super) fn signal(&mut self, signal: Signal) {
        match self {
            Self::Cgroup(tree) => tree.signal(signal),
            Self::Reaper(tree) => tree.signal(signal),
        }
    }

    /// Begins the end of every process in it.
    pub(super) fn end(&mut self, manner: Manner) {
        match self {
            Self::Cgroup(tree) => tree.end(manner),
            Self::Reaper(tree) => tree.end(manner),
        }
    }

    /// The command's input has come to its end: whoever holds it in this tree lets go of it.
    pub(super) fn close_input(&mut self) {
        match self {
            Self::Cgroup(_) => {}
            Self::Reaper(tree) => tree.close_input(),
        }
    }

    /// Reaps what is left of a tree that is gone.
    pub(super) async fn bury(self) {
        match self {
            Self::Cgroup(tree) => tree.bury().await,
            Self::Reaper(tree) => tree.reap().await,
        }
    }

    /// Lets go: the command has ended, and what it left behind lives on.
    pub(super) async fn leave(self) {
        match self {
            Self::Cgroup(tree) => tree.leave(),
            Self::Reaper(tree) => tree.leave().await,
        }
    }
}
