//! The half that hears a command.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tidegate_bridge::PipeReceiver;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::exec::{Exit, Output};
use tidegate_lifecycle::id::HopName;
use tidegate_wire::exec::Item;
use tokio::sync::oneshot;

use super::task::{Task, dropped};
use super::{Collected, Outcome, OutputReader, Started, outputs};

/// Bytes that a command wrote, at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// To which of its outputs. A terminal has stdout alone.
    pub output: Output,
    /// The bytes.
    pub data: Bytes,
    /// Counts the chunks of this output from 1; 0 on a path where nobody counts.
    pub sequence: u64,
    /// Counts the chunks of both outputs, in the order in which they were read; 0 likewise.
    pub order: u64,
}

/// Hears a command. What is not read slows the command down. Dropped, what it writes is thrown away.
#[derive(Debug)]
pub struct Events {
    receiver: PipeReceiver,
    starting: Option<oneshot::Receiver<Started>>,
    started: Option<Started>,
    runs: bool,
    exit: Option<Box<Exit>>,
    outcome: Option<Outcome>,
    task: Arc<Task>,
    /// What this program is called as a hop, which is no news to it.
    here: HopName,
}

impl Events {
    pub(super) const fn new(
        receiver: PipeReceiver,
        starting: oneshot::Receiver<Started>,
        task: Arc<Task>,
        here: HopName,
    ) -> Self {
        Self {
            receiver,
            starting: Some(starting),
            started: None,
            runs: false,
            exit: None,
            outcome: None,
            task,
            here,
        }
    }

    /// Waits until the command runs.
    ///
    /// # Errors
    ///
    /// Why it does not: [`Events::wait`] says the same.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn started(&mut self) -> Result<&Started, End> {
        if let Some(starting) = &mut self.starting {
            let told = starting.await;
            self.starting = None;
            self.started = told.ok();
        }
        if self.started.is_none() {
            let outcome = self.wait().await;
            return Err(outcome.end().cloned().unwrap_or_else(dropped));
        }
        self.started.as_ref().ok_or_else(dropped)
    }

    /// The next bytes that the command wrote, of either output; none when nothing follows. Whether
    /// that is all it wrote, [`Events::wait`] says.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no byte is lost.
    pub async fn next(&mut self) -> Option<Chunk> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`Events::next`].
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        while self.outcome.is_none() {
            match std::task::ready!(self.receiver.poll_recv(cx)) {
                Ok(Some(item)) => match self.take(item) {
                    Some(chunk) => return Poll::Ready(Some(chunk)),
                    None => continue,
                },
                Ok(None) => self.conclude(None),
                Err(end) => self.conclude(Some(end)),
            }
        }
        Poll::Ready(None)
    }

    /// Reads and drops the output that is left, and says how the command ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; the output that was dropped is gone.
    pub async fn wait(&mut self) -> Outcome {
        while self.next().await.is_some() {}
        // Set before the first `None`.
        self.outcome.clone().unwrap_or(Outcome::CancelledHere)
    }

    /// Keeps at most `limit` bytes of each output, and says how the command ended.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: what was kept is gone.
    pub async fn collect(&mut self, limit: usize) -> Collected {
        let mut collected = Collected::new(limit);
        while let Some(chunk) = self.next().await {
            collected.take(&chunk);
        }
        collected.outcome = self.wait().await;
        collected
    }

    /// Stdout and stderr as readers of their own. Read both at the same time: bytes of one that
    /// nobody takes hold up the other.
    pub fn outputs(self) -> (OutputReader, OutputReader) {
        outputs::of(self)
    }

    /// How the command ended, once nothing follows.
    pub(super) const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    fn take(&mut self, item: Item) -> Option<Chunk> {
        match item {
            Item::Output {
                output,
                data,
                sequence,
                order,
            } => Some(Chunk {
                output,
                data,
                sequence,
                order,
            }),
            Item::Started(_) => {
                self.runs = true;
                None
            }
            Item::Exit(exit) => {
                self.exit = Some(exit);
                None
            }
            Item::Start(_)
            | Item::Stdin(_)
            | Item::StdinFin
            | Item::Resize(_)
            | Item::Signal(_)
            | Item::Empty
            | Item::Unknown => None,
        }
    }

    fn conclude(&mut self, mut end: Option<End>) {
        if let Some(end) = &mut end {
            end.hops.pop_if(|hop| *hop == self.here);
        }
        self.outcome = Some(match (self.exit.take(), end) {
            // The exit is here whatever became of the stream behind it.
            (Some(exit), _) => Outcome::of(*exit),
            (None, _) if self.task.is_cancelled() => Outcome::CancelledHere,
            (None, Some(end)) if is_ours(&end) => Outcome::CancelledHere,
            (None, Some(end)) if self.runs => Outcome::Lost(Box::new(end)),
            (None, Some(end)) => Outcome::NotStarted(Box::new(end)),
            (None, None) => Outcome::Lost(Box::new(no_exit())),
        });
    }
}

/// Whether the end is this program's own: its [`Input`](super::Input) was dropped.
fn is_ours(end: &End) -> bool {
    end.origin == Origin::Client && end.reason == Reason::ClientCancelled
}

fn no_exit() -> End {
    let message = "the stream ended before the command's exit was told";
    End::new(Origin::Client, Reason::TransportLost, message)
}
