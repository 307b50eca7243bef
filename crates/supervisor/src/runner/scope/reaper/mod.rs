//! The scope without cgroups: a small process is the root of the command's tree.
//!
//! ```text
//!  supervisor ══control══ reaper ── launcher, then command ── descendants
//! ```
//!
//! The reaper is a subreaper: whoever loses its parent becomes its child, so that no double fork
//! and no `setsid` leads out of the tree. It ends the tree when it is told to, or when its control
//! socket breaks: then the supervisor is gone.

pub(in crate::runner) mod program;
mod record;
mod scan;

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;
use tokio::net::UnixStream;
use tokio::time::Instant;

use self::record::{RECORD, Said, Told};
use super::{AFTER_KILL, Manner, Step};
use crate::runner::child::{Child, Ending};
use crate::runner::nursery::{Kind, Nursery};

/// How much longer than it may the reaper may take.
const PATIENCE: Duration = Duration::from_millis(500);

/// What a reaper has to know before it starts anything.
#[derive(Clone, Copy, Debug)]
pub(in crate::runner) struct Setup<'a> {
    /// How the tree ends if the supervisor is lost.
    pub(in crate::runner) manner: Manner,
    /// What the command leaves behind ends with it.
    pub(in crate::runner) kill_background: bool,
    /// Our end of the command's standard input. The reaper holds it, too: if the supervisor is
    /// killed, the command must die before it can take that for the end of its input.
    pub(in crate::runner) input: Option<BorrowedFd<'a>>,
}

/// The descendants of a reaper.
#[derive(Debug)]
pub(in crate::runner) struct Tree {
    reaper: Child,
    control: UnixStream,
    /// The part of a record that has arrived.
    partial: ([u8; RECORD], usize),
    ended: bool,
    spawn_error: Option<i32>,
    /// When the reaper itself is given up.
    given_up: Option<Instant>,
}

impl Tree {
    /// Starts a reaper, and a launcher under it that listens on `launcher`.
    pub(in crate::runner) async fn start(
        nursery: &Nursery,
        launcher: OwnedFd,
        setup: Setup<'_>,
    ) -> io::Result<Self> {
        let (mut ours, theirs) = crate::runner::socket::pair()?;
        let reaper = nursery.bear(Kind::Reaper, theirs, None, &mut ours).await?;
        let told = Told::Setup {
            manner: setup.manner,
            kill_background: setup.kill_background,
        };
        let mut files = vec![launcher.as_fd()];
        files.extend(setup.input);
        crate::runner::socket::send(&ours, &told.encode(), &files)?;
        Ok(Self {
            reaper,
            control: ours,
            partial: ([0; RECORD], 0),
            ended: false,
            spawn_error: None,
            given_up: None,
        })
    }

    /// Why the reaper could not start a launcher, if that has been said.
    pub(in crate::runner) async fn spawn_error(&mut self) -> Option<i32> {
        while self.spawn_error.is_none() && !self.ended {
            if self.step().await.is_none() {
                break;
            }
        }
        self.spawn_error
    }

    /// The command's standard input has come to its end.
    pub(in crate::runner) fn close_input(&self) {
        self.tell(Told::CloseInput);
    }

    pub(super) async fn next(&mut self) -> Step {
        loop {
            let Some(given_up) = self.given_up else {
                match self.step().await {
                    Some(Some(step)) => return step,
                    Some(None) => continue,
                    None => return self.lost(),
                }
            };
            match tokio::time::timeout_at(given_up, self.step()).await {
                Ok(Some(Some(step))) => return step,
                Ok(Some(None)) => {}
                Ok(None) | Err(_) => return self.lost(),
            }
        }
    }

    /// The reaper is dead or does not answer. The command dies with it; nobody knows of the rest.
    fn lost(&mut self) -> Step {
        self.reaper.signal(Signal::KILL);
        if self.ended {
            return Step::Gone { leftover: 1 };
        }
        self.ended = true;
        self.given_up = Some(Instant::now());
        Step::Ended(Ending::Signal(Signal::KILL.as_raw()))
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.tell(Told::Signal(signal.as_raw()));
    }

    pub(super) fn end(&mut self, manner: Manner) {
        self.tell(Told::End(manner));
        self.given_up = Some(Instant::now() + manner.grace + AFTER_KILL + PATIENCE);
    }

    pub(super) async fn leave(self) {
        self.tell(Told::Leave);
        self.reap().await;
    }

    /// Reaps the reaper, which has nothing left to do.
    pub(in crate::runner) async fn reap(mut self) {
        // An error says that there is nothing to reap.
        if tokio::time::timeout(AFTER_KILL, self.reaper.ended())
            .await
            .is_err()
        {
            self.reaper.signal(Signal::KILL);
            let _ = self.reaper.ended().await;
        }
        self.reaper.reap();
    }

    fn tell(&self, told: Told) {
        // Records are few and small: only a reaper that is dead or stopped does not take them.
        let _ = self.control.try_write(&told.encode());
    }

    /// Waits for one record: nothing if the reaper is gone, else what it means, if anything.
    async fn step(&mut self) -> Option<Option<Step>> {
        let said = self.hear().await?;
        Some(match said {
            Said::SpawnFailed(errno) => {
                self.spawn_error = Some(errno);
                None
            }
            Said::Ended(ending) => {
                self.ended = true;
                Some(Step::Ended(ending))
            }
            Said::Gone { leftover } => Some(Step::Gone { leftover }),
        })
    }

    /// Waits for one record; nothing if none will come any more.
    ///
    /// An error is the reaper's end as well: ECONNRESET is one that died before it had read all it
    /// was told. Whatever else it is, [`Self::lost`] kills the reaper, and claims nothing.
    async fn hear(&mut self) -> Option<Said> {
        while self.partial.1 < RECORD {
            let (bytes, filled) = &mut self.partial;
            let read = self.control.read(&mut bytes[*filled..]).await;
            match read {
                Ok(0) => return None,
                Ok(read) => *filled += read,
                Err(error) => {
                    tracing::debug!(%error, "a reaper is not heard any more");
                    return None;
                }
            }
        }
        self.partial.1 = 0;
        Said::decode(self.partial.0)
    }
}
