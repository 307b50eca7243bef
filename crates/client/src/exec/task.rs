//! The task that moves what is said between a program and its command.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tidegate_bridge::{ExecEnd, ExecPipe, Handle, Tunnel};
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::exec::Execution;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::Started;

/// Runs the tunnel until its stream has ended. Dropped, it resets what has not.
#[derive(Debug)]
pub(super) struct Task {
    handle: Handle,
    cancelled: AtomicBool,
    _running: JoinSet<()>,
}

impl Task {
    pub(super) fn spawn(
        mut tunnel: Tunnel<ExecPipe, ExecEnd, Execution>,
        handle: Handle,
    ) -> (Self, oneshot::Receiver<Started>) {
        let (told, started) = oneshot::channel();
        let mut running = JoinSet::new();
        running.spawn(async move {
            if let Ok(opened) = tunnel.open().await {
                // Not everybody asks.
                let _ = told.send(Started {
                    stream: opened.stream,
                    session: opened.session,
                    path: opened.path,
                });
                let outcome = tunnel.run().await;
                tracing::debug!(duration = ?outcome.duration, end = ?outcome.end, "the exec has ended");
            }
            tunnel.linger().await;
        });
        let task = Self {
            handle,
            cancelled: AtomicBool::new(false),
            _running: running,
        };
        (task, started)
    }

    /// One that moves nothing.
    #[cfg(test)]
    pub(super) fn idle() -> Self {
        Self {
            handle: Handle::new(Instant::now()),
            cancelled: AtomicBool::new(false),
            _running: JoinSet::new(),
        }
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.handle.close(dropped());
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Bytes of output that were taken, and of input that the gateway took.
    pub(super) fn progress(&self) -> tidegate_bridge::Progress {
        self.handle.progress(Instant::now())
    }
}

/// What it means that the program does not want its command any more.
pub(super) fn dropped() -> End {
    let message = "the program cancelled its command";
    End::new(Origin::Client, Reason::ClientCancelled, message)
}
