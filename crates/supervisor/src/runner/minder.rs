//! The task that stays with a command until its tree is done with.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::child::Ending;
use super::kill::{Why, judge};
use super::output::Pipe;
use super::progress::Progress;
use super::scope::watcher::Watcher;
use super::scope::{Manner, Step, Tree};
use super::stdin::Inlet;
use super::terminal::Terminal;

/// How long others may add to the outputs of a command that has ended.
const OTHERS: Duration = Duration::from_millis(250);

/// Who else holds the command's input, in case that the supervisor is killed.
#[derive(Debug)]
pub(super) enum Holder {
    /// Nobody: there is none, or it is a terminal, which hangs up.
    Nobody,
    /// The watcher, under a number.
    Watcher(Arc<Watcher>, u64),
    /// The reaper.
    Reaper,
}

impl Holder {
    /// The watcher, if there is something to hold.
    pub(super) fn of(watcher: &Arc<Watcher>, input: Option<BorrowedFd<'_>>) -> io::Result<Self> {
        match input {
            Some(input) => {
                let number = watcher.hold(input)?;
                Ok(Self::Watcher(Arc::clone(watcher), number))
            }
            None => watcher.watch().map(|()| Self::Nobody),
        }
    }

    /// Takes the input out of the watcher's hands. A reaper's end with the tree.
    pub(super) fn let_go(self) {
        match self {
            Self::Watcher(watcher, number) => watcher.release(number),
            Self::Nobody | Self::Reaper => {}
        }
    }
}

/// What was agreed about the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) timeout: Option<Duration>,
    pub(super) manner: Manner,
    pub(super) kill_background: bool,
}

/// Stays with a command until its tree is done with.
#[derive(Debug)]
pub(super) struct Minder {
    pub(super) tree: Tree,
    pub(super) terms: Terms,
    pub(super) started: Instant,
    pub(super) signals: mpsc::Receiver<Signal>,
    pub(super) terminal: Option<Terminal>,
    pub(super) pipes: Vec<Arc<Pipe>>,
    pub(super) inlet: Arc<Inlet>,
    pub(super) holder: Holder,
    pub(super) progress: Arc<Progress>,
    /// Its place among those that may run.
    pub(super) place: Option<OwnedSemaphorePermit>,
}

/// What is known when the command has ended.
#[derive(Clone, Copy, Debug)]
struct Ended {
    ending: Ending,
    duration: Duration,
}

impl Minder {
    /// Waits for the command's end, makes it end if somebody wants that, and tells the result.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        match self.watch(&stop).await {
            Ok(ending) => self.ended_by_itself(ending).await,
            Err(why) => {
                self.tree.end(self.terms.manner);
                let (ended, leftover) = self.see_it_end(None).await;
                self.close_input();
                self.finish(ended, Some(why), leftover);
                self.tree.bury().await;
            }
        }
    }

    /// Serves the command while it runs; an error is a reason to end it.
    async fn watch(&mut self, stop: &CancellationToken) -> Result<Ending, Why> {
        let deadline = self.terms.timeout.map(|timeout| self.started + timeout);
        let mut holds_input = true;
        loop {
            tokio::select! {
                biased;
                step = self.tree.next() => if let Step::Ended(ending) = step {
                    return Ok(ending);
                },
                why = self.progress.killed() => return Err(why),
                () = stop.cancelled() => return Err(Why::Cancelled),
                () = sleep(deadline) => return Err(Why::Timeout),
                () = self.progress.input_closed(), if holds_input => {
                    holds_input = false;
                    self.release_input();
                }
                Some(signal) = self.signals.recv() => self.signal(signal),
            }
        }
    }

    async fn ended_by_itself(mut self, ending: Ending) {
        let ended = self.mark_end(ending);
        if !self.terms.kill_background {
            self.close_input();
            self.finish(ended, None, 0);
            self.tree.leave().await;
            return;
        }
        self.tree.end(self.terms.manner);
        let (ended, leftover) = self.see_it_end(Some(ended)).await;
        self.close_input();
        self.finish(ended, None, leftover);
        self.tree.bury().await;
    }

    /// Waits until the tree, which was told to end, is gone.
    async fn see_it_end(&mut self, mut ended: Option<Ended>) -> (Ended, u32) {
        loop {
            match self.tree.next().await {
                Step::Ended(ending) => ended = Some(self.mark_end(ending)),
                Step::Gone { leftover } => {
                    // One that cannot even be killed: nobody will know how it ends.
                    let killed = Ending::Signal(Signal::KILL.as_raw());
                    let ended = ended.unwrap_or_else(|| self.mark_end(killed));
                    return (ended, leftover);
                }
            }
        }
    }

    /// Notes that the command has ended at this moment.
    fn mark_end(&self, ending: Ending) -> Ended {
        let now = Instant::now();
        for pipe in &self.pipes {
            pipe.mark_end(now + OTHERS);
        }
        self.progress.end();
        Ended {
            ending,
            duration: now - self.started,
        }
    }

    fn finish(&mut self, ended: Ended, why: Option<Why>, leftover: u32) {
        let verdict = judge(ended.ending, why, ended.duration, leftover);
        // Whoever hears of the end finds the place free.
        self.place = None;
        self.progress.finish(verdict);
    }

    fn signal(&mut self, signal: Signal) {
        let reached = self.terminal.as_ref().is_some_and(|it| it.signal(signal));
        if !reached {
            self.tree.signal(signal);
        }
    }

    fn close_input(&mut self) {
        self.inlet.close();
        self.release_input();
    }

    fn release_input(&mut self) {
        match std::mem::replace(&mut self.holder, Holder::Nobody) {
            Holder::Reaper => self.tree.close_input(),
            holder @ (Holder::Nobody | Holder::Watcher(..)) => holder.let_go(),
        }
    }
}

async fn sleep(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}
