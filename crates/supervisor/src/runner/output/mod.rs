//! What a command writes: read at the caller's pace, counted, cut where the budget says so.
//!
//! ```text
//!  pipe ─▶ Budget ─▶ events              while something is sent on
//!  pipe ─▶ discard ─▶ count              after the cut: the command must not block
//!  pipe ─▶ forget                        after the end, while another process holds the pipe
//! ```

mod budget;
mod pipe;
mod source;

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub(super) use self::pipe::Pipe;
use self::pipe::Taken;
pub(super) use self::source::{Source, Sourced};
use super::progress::Progress;

/// The tasks that read outputs which nobody wants.
#[derive(Clone, Debug)]
pub(super) struct Drains {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// One for each pipe that outlives its command.
    room: Arc<Semaphore>,
}

impl Drains {
    /// Reads on for at most `most` pipes that outlive their commands.
    pub(super) fn new(most: usize) -> Self {
        Self {
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            room: Arc::new(Semaphore::new(most)),
        }
    }

    /// Closes all pipes: who writes them dies of it.
    pub(super) async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Counts what comes out of a pipe until the output is over, and then forgets what comes.
    pub(super) fn discard(&self, runtime: &Handle, pipe: Arc<Pipe>, progress: Arc<Progress>) {
        let drains = self.clone();
        self.spawn(runtime, async move {
            let end = drain(&pipe, &progress).await;
            pipe.close(end != Taken::Finished);
            if end == Taken::Held {
                drains.forget_here(&pipe).await;
            }
        });
    }

    /// Forgets what comes out of a pipe, until nobody writes it any more.
    pub(super) fn forget(&self, runtime: &Handle, pipe: Arc<Pipe>) {
        let drains = self.clone();
        self.spawn(runtime, async move { drains.forget_here(&pipe).await });
    }

    async fn forget_here(&self, pipe: &Pipe) {
        // Without room, whoever writes it dies of SIGPIPE.
        if let Ok(_room) = self.room.try_acquire() {
            pipe.forget().await;
        }
    }

    fn spawn(&self, runtime: &Handle, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        let work = async move {
            stop.run_until_cancelled(work).await;
        };
        self.tasks.spawn_on(work, runtime);
    }
}

/// Takes everything out of a pipe, up to what is not bytes.
async fn drain(pipe: &Pipe, progress: &Progress) -> Taken {
    loop {
        let late = async {
            progress.ended().await;
            if let Some(until) = pipe.others_until() {
                tokio::time::sleep_until(until).await;
            }
        };
        let taken = tokio::select! {
            taken = std::future::poll_fn(|cx| pipe.poll_take(cx)) => taken,
            () = late, if !is_late(pipe) => continue,
        };
        match taken {
            Taken::Bytes(_) => {}
            end @ (Taken::Finished | Taken::Held | Taken::Broken) => return end,
        }
    }
}

fn is_late(pipe: &Pipe) -> bool {
    pipe.others_until()
        .is_some_and(|until| until <= tokio::time::Instant::now())
}
