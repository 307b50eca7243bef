//! What a command does, as its caller sees it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use tidegate_lifecycle::exec::{Exit, KillScope, Output};
use tokio::time::{Instant, Sleep, sleep_until};

use super::kill::Why;
use super::output::{Source, Sourced};
use super::progress::{Progress, Verdict};

/// What a command does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It has written something.
    Output {
        /// Where.
        output: Output,
        /// What: at least one byte and at most 64 KiB.
        data: Bytes,
        /// The number of this piece among those of its output, from 1.
        sequence: u64,
        /// The number of this piece among those of both outputs, from 1: the order in which they
        /// were read, not that in which they were written.
        order: u64,
    },
    /// It has ended, and so have its outputs: the last event.
    Exit(Exit),
}

/// The reading half of a command that runs.
///
/// Nothing is read from the command before it is asked for: who does not ask slows the command
/// down. Dropping it before [`Event::Exit`] ends the command, unless that has ended by itself.
#[derive(Debug)]
pub struct Events {
    sources: Vec<(Output, Source, u64)>,
    order: u64,
    /// Which output is asked first.
    turn: usize,
    scope: KillScope,
    progress: Arc<Progress>,
    timer: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

impl Events {
    pub(super) fn new(
        sources: impl IntoIterator<Item = (Output, Source)>,
        scope: KillScope,
        progress: Arc<Progress>,
    ) -> Self {
        let sources = sources.into_iter();
        Self {
            sources: sources
                .map(|(output, source)| (output, source, 0))
                .collect(),
            order: 0,
            turn: 0,
            scope,
            progress,
            timer: None,
            is_over: false,
        }
    }

    /// Waits for the next event; nothing follows [`Event::Exit`].
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        // Before anything is looked at: what happens meanwhile wakes.
        self.progress.wake_reader(cx);
        loop {
            if let Poll::Ready(event) = self.poll_outputs(cx) {
                return Poll::Ready(Some(event));
            }
            if let (Some(verdict), true) = (self.progress.verdict(), self.are_over()) {
                self.is_over = true;
                return Poll::Ready(Some(Event::Exit(self.exit(verdict))));
            }
            if self.poll_timer(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Waits for the next event, like [`poll_next`](Self::poll_next).
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_outputs(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        for _ in 0..self.sources.len() {
            self.turn = (self.turn + 1) % self.sources.len();
            let (output, source, sequence) = &mut self.sources[self.turn];
            if let Poll::Ready(Sourced::Bytes(data)) = source.poll_next(cx) {
                self.order += 1;
                *sequence += 1;
                return Poll::Ready(Event::Output {
                    output: *output,
                    data,
                    sequence: *sequence,
                    order: self.order,
                });
            }
        }
        Poll::Pending
    }

    fn are_over(&self) -> bool {
        self.sources.iter().all(|(_, source, _)| source.is_over())
    }

    /// Ready once, when others may no longer add to the outputs.
    fn poll_timer(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.timer.is_none() {
            let mut ends = self
                .sources
                .iter()
                .filter_map(|(_, source, _)| source.others_until());
            let now = Instant::now();
            let Some(until) = ends.next().filter(|until| *until > now) else {
                return Poll::Pending;
            };
            self.timer = Some(Box::pin(sleep_until(until)));
        }
        let Some(timer) = self.timer.as_mut().filter(|timer| !timer.is_elapsed()) else {
            return Poll::Pending;
        };
        timer.as_mut().poll(cx)
    }

    fn exit(&self, verdict: Verdict) -> Exit {
        let summary = |output: Output| {
            let found = self.sources.iter().find(|(it, _, _)| *it == output);
            found
                .map(|(_, source, _)| source.summary())
                .unwrap_or_default()
        };
        Exit {
            code: verdict.code,
            reason: verdict.reason,
            signal: verdict.signal,
            stdout: summary(Output::Stdout),
            stderr: summary(Output::Stderr),
            duration: verdict.duration,
            scope: self.scope,
            leftover: verdict.leftover,
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Too late to matter if the command has ended.
        self.progress.kill(Why::CallerGone);
    }
}
