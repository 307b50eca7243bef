//! Threads that each run a runtime of their own.
//!
//! A relay wakes its other half for every frame, and a wake that crosses threads costs as much as
//! the copy. So a connection and all that belongs to it live on one thread, its shard; work is
//! spread over threads connection by connection.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// How many tasks a busy thread runs before it looks for what has arrived. A tunnel moves megabytes in
/// its turn, and a heartbeat should not wait behind many of them.
const EVENT_INTERVAL: u32 = 16;

/// The threads. Dropping them ends every task on them and waits until they are gone.
#[derive(Debug)]
pub struct Shards {
    shards: Arc<[Lane]>,
    next: AtomicUsize,
    stop: CancellationToken,
    threads: Vec<thread::JoinHandle<()>>,
}

/// A handle to one of the threads.
#[derive(Clone, Debug)]
pub struct Shard {
    index: usize,
    all: Arc<[Lane]>,
}

#[derive(Debug)]
struct Lane {
    handle: Handle,
    tasks: TaskTracker,
}

impl Shards {
    /// Starts `count` threads, at least one.
    ///
    /// # Errors
    ///
    /// What the system says when it has no thread or descriptor left.
    pub fn new(count: usize) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let mut lanes = Vec::new();
        let mut threads = Vec::new();
        for index in 0..count.max(1) {
            let (lane, thread) = start(index, stop.clone())?;
            lanes.push(lane);
            threads.push(thread);
        }
        Ok(Self {
            shards: lanes.into(),
            next: AtomicUsize::new(0),
            stop,
            threads,
        })
    }

    /// Tells how many there are.
    pub fn count(&self) -> usize {
        self.shards.len()
    }

    /// Returns the next one in turn.
    pub fn pick(&self) -> Shard {
        self.get(self.next.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the one numbered `index`, modulo their number.
    pub fn get(&self, index: usize) -> Shard {
        Shard {
            index: index % self.shards.len(),
            all: Arc::clone(&self.shards),
        }
    }
}

fn start(index: usize, stop: CancellationToken) -> io::Result<(Lane, thread::JoinHandle<()>)> {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .build()?;
    let lane = Lane {
        handle: runtime.handle().clone(),
        tasks: TaskTracker::new(),
    };
    let thread = thread::Builder::new()
        .name(format!("tidegate-shard-{index}"))
        .spawn(move || runtime.block_on(stop.cancelled()))?;
    Ok((lane, thread))
}

impl Drop for Shards {
    fn drop(&mut self) {
        self.stop.cancel();
        for thread in self.threads.drain(..) {
            // A task that owns the shards may drop them: a thread cannot wait for itself.
            if thread.thread().id() != thread::current().id() {
                // It panicked only if the runtime did, and that was printed.
                let _ = thread.join();
            }
        }
    }
}

impl Shard {
    /// Tells its number.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns the shard numbered `index` of the same threads, modulo their number.
    pub fn sibling(&self, index: usize) -> Self {
        Self {
            index: index % self.all.len(),
            all: Arc::clone(&self.all),
        }
    }

    /// Runs `task` on this thread. It ends with the threads at the latest.
    pub fn spawn<F>(&self, name: &'static str, task: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let lane = self.lane();
        let span = tracing::debug_span!("task", name, shard = self.index);
        lane.tasks.spawn_on(task.instrument(span), &lane.handle)
    }

    /// Tells how many tasks run on this thread.
    pub fn tasks(&self) -> usize {
        self.lane().tasks.len()
    }

    /// Returns the handle of the thread's runtime.
    pub fn handle(&self) -> &Handle {
        &self.lane().handle
    }

    fn lane(&self) -> &Lane {
        &self.all[self.index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    fn thread_name() -> String {
        thread::current().name().unwrap_or_default().to_owned()
    }

    #[tokio::test]
    async fn tasks_run_on_their_thread() {
        let shards = Shards::new(2).unwrap();
        let name = shards
            .get(3)
            .spawn("name", async { thread_name() })
            .await
            .unwrap();
        assert_eq!(name, "tidegate-shard-1");
        assert_eq!(
            (
                shards.pick().index(),
                shards.pick().index(),
                shards.pick().index()
            ),
            (0, 1, 0)
        );
    }

    #[tokio::test]
    async fn dropping_the_threads_ends_their_tasks() {
        let shards = Shards::new(1).unwrap();
        let endless = shards.pick().spawn("endless", pending::<()>());
        drop(shards);
        assert!(endless.await.unwrap_err().is_cancelled());
    }
}
