//! How far an execution has come: what its parts tell each other.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Context;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tidegate_lifecycle::exec::ExitReason;
use tokio_util::sync::CancellationToken;

use super::kill::Why;

/// What is known of the end when the tree is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) code: i32,
    pub(super) reason: ExitReason,
    pub(super) signal: Option<i32>,
    pub(super) duration: Duration,
    pub(super) leftover: u32,
}

/// How far an execution has come.
#[derive(Debug, Default)]
pub(super) struct Progress {
    verdict: Mutex<Option<Verdict>>,
    /// The command has ended.
    ended: CancellationToken,
    /// Somebody wants it to end, and why.
    killed: CancellationToken,
    why: OnceLock<Why>,
    /// The caller has closed the command's input.
    input_closed: CancellationToken,
    /// Who waits for outputs and the verdict.
    reader: AtomicWaker,
    /// Who waits for room in the command's input.
    writer: AtomicWaker,
}

impl Progress {
    /// Asks for the command's end. The first reason counts.
    pub(super) fn kill(&self, why: Why) {
        let _ = self.why.set(why);
        self.killed.cancel();
    }

    /// Waits until somebody asks for the command's end.
    pub(super) async fn killed(&self) -> Why {
        self.killed.cancelled().await;
        self.why.get().copied().unwrap_or(Why::CallerGone)
    }

    /// Notes the command's end.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.reader.wake();
        self.writer.wake();
    }

    /// Waits for the command's end.
    pub(super) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Whether the command has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_cancelled()
    }

    /// Notes that the tree is done with.
    pub(super) fn finish(&self, verdict: Verdict) {
        *self.lock() = Some(verdict);
        self.reader.wake();
    }

    /// What is known of the end, once the tree is done with.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        *self.lock()
    }

    /// Notes that the command's input is over.
    pub(super) fn close_input(&self) {
        self.input_closed.cancel();
    }

    /// Waits until the command's input is over.
    pub(super) async fn input_closed(&self) {
        self.input_closed.cancelled().await;
    }

    /// Wakes this reader when the command ends, and when the tree is done with.
    pub(super) fn wake_reader(&self, cx: &Context<'_>) {
        self.reader.register(cx.waker());
    }

    /// Wakes this writer when the command ends.
    pub(super) fn wake_writer(&self, cx: &Context<'_>) {
        self.writer.register(cx.waker());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Verdict>> {
        self.verdict.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
