//! What a process prints: read to the end, so that it never blocks, and kept in part.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// Lines kept per process.
const KEPT: usize = 20;

/// The last lines of standard output and standard error.
pub(super) struct Output {
    lines: Arc<Lines>,
    _readers: JoinSet<()>,
}

impl Output {
    /// Reads both until they end or this value is dropped.
    pub(super) fn collect(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>) -> Self {
        let lines = Arc::new(Lines::default());
        let mut readers = JoinSet::new();
        if let Some(stdout) = stdout {
            readers.spawn(read(stdout, Arc::clone(&lines)));
        }
        if let Some(stderr) = stderr {
            readers.spawn(read(stderr, Arc::clone(&lines)));
        }
        Self {
            lines,
            _readers: readers,
        }
    }

    /// The next line's arrival, counted from this call on.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + use<> {
        let lines = Arc::clone(&self.lines);
        lines.changed.clone().notified_owned()
    }

    /// The first kept line in which `find` finds something.
    pub(super) fn find<T>(&self, find: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.lines.kept().iter().find_map(|line| find(line))
    }

    /// All kept lines.
    pub(super) fn tail(&self) -> String {
        let kept = self.lines.kept();
        kept.iter().map(|line| format!("    {line}\n")).collect()
    }
}

#[derive(Default)]
struct Lines {
    kept: Mutex<VecDeque<String>>,
    changed: Arc<Notify>,
}

impl Lines {
    fn kept(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: String) {
        let mut kept = self.kept();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(line);
        drop(kept);
        self.changed.notify_waiters();
    }
}

async fn read(source: impl AsyncRead + Unpin, lines: Arc<Lines>) {
    let mut source = BufReader::new(source).lines();
    while let Ok(Some(line)) = source.next_line().await {
        lines.push(line);
    }
}
