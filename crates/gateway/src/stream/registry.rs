//! Which streams there are, and whether there may be more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use tidegate_bridge::{Handle, Outcome, Progress};
use tidegate_lifecycle::id::{GatewayId, SandboxName, StreamId};
use tidegate_lifecycle::{Cause, End, Origin, Reason};
use tidegate_transport::Buffered;
use tokio::sync::Notify;

use super::{Kind, Subject};
use crate::config::Config;
use crate::metrics::{Metrics, Route};
use crate::session::Leash;

/// How much longer than its processes may take the exit of a command is waited for.
const EXIT_SLACK: Duration = Duration::from_secs(3);

/// A stream, as others see it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: StreamId,
    pub(crate) subject: Subject,
    pub(crate) since: SystemTime,
    pub(crate) handle: Handle,
    leash: Leash,
    /// The gateway that its path leads to, if that is another one.
    owner: OnceLock<GatewayId>,
}

impl Entry {
    pub(crate) const fn kind(&self) -> Kind {
        self.subject.kind()
    }

    /// Ends it because somebody wants it who is not its caller. A command that runs is asked to end
    /// and has time for its exit, which its caller is told; the second time it is ended at once.
    pub(crate) fn end(&self, end: End) {
        let asked = self
            .subject
            .program
            .as_ref()
            .filter(|_| self.progress().state != "opening" && self.leash.ask(&end));
        match asked {
            Some(program) => {
                let until = Instant::now() + program.kill_grace + EXIT_SLACK;
                self.handle.close_by(end, until);
            }
            None => self.handle.close(end),
        }
    }

    /// The gateways that it crosses, from the client on; `here` is this one.
    pub(crate) fn path(&self, here: &GatewayId) -> Vec<GatewayId> {
        let before = self.subject.requester.iter();
        let beyond = self.owner.get();
        before.chain([here]).chain(beyond).cloned().collect()
    }

    /// Whether it crosses another gateway than this one.
    pub(crate) fn has_peer(&self) -> bool {
        self.subject.requester.is_some() || self.owner.get().is_some()
    }

    pub(crate) fn progress(&self) -> Progress {
        self.handle.progress(Instant::now())
    }
}

/// Payload bytes, both ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Carried {
    pub(crate) up: u64,
    pub(crate) down: u64,
}

/// Every stream with a valid first message, and how many wait for their path.
#[derive(Debug)]
pub(crate) struct Streams {
    table: Mutex<Table>,
    limits: Limits,
    buffered: Arc<Buffered>,
    metrics: Arc<Metrics>,
    /// Rung when the last one has ended.
    empty: Notify,
}

#[derive(Debug)]
struct Limits {
    streams: usize,
    per_sandbox: usize,
    pending: usize,
    execs: usize,
    execs_per_sandbox: usize,
    buffered: usize,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<StreamId, Arc<Entry>>,
    counts: HashMap<SandboxName, Counts>,
    pending: usize,
    execs: usize,
    ended: Carried,
    /// Why no stream is taken in any more.
    closed: Option<End>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    streams: usize,
    pending: usize,
    execs: usize,
}

impl Streams {
    pub(crate) fn new(
        config: &Config,
        buffered: Arc<Buffered>,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let limits = Limits {
            streams: config.max_streams,
            per_sandbox: config.max_streams_per_sandbox,
            pending: config.max_pending_per_sandbox,
            execs: config.max_execs,
            execs_per_sandbox: config.max_execs_per_sandbox,
            buffered: config.max_buffered.bytes(),
        };
        Arc::new(Self {
            table: Mutex::default(),
            limits,
            buffered,
            metrics,
            empty: Notify::new(),
        })
    }

    /// Takes a stream in, which then waits for its path.
    ///
    /// # Errors
    ///
    /// The limit that it would break, or that the gateway is closed. Nobody was bothered for it.
    pub(crate) fn admit(
        self: &Arc<Self>,
        subject: Subject,
        handle: Handle,
        leash: Leash,
    ) -> Result<(StreamGuard, PendingGuard), End> {
        let mut table = self.table();
        match &table.closed {
            Some(end) => return Err(end.clone()),
            None => self.check(&table, &subject)?,
        }
        let entry = Arc::new(Entry {
            id: table.free_id(),
            subject,
            since: SystemTime::now(),
            handle,
            leash,
            owner: OnceLock::new(),
        });
        let execs = usize::from(entry.kind() == Kind::Exec);
        let counts = table
            .counts
            .entry(entry.subject.sandbox.clone())
            .or_default();
        counts.streams += 1;
        counts.pending += 1;
        counts.execs += execs;
        table.pending += 1;
        table.execs += execs;
        table.entries.insert(entry.id.clone(), Arc::clone(&entry));
        drop(table);
        let pending = PendingGuard {
            streams: Arc::clone(self),
            entry: Arc::clone(&entry),
            born: Instant::now(),
            route: None,
        };
        Ok((
            StreamGuard {
                streams: Arc::clone(self),
                entry,
                outcome: None,
            },
            pending,
        ))
    }

    /// Ends every stream with `end`, and refuses every one that comes later.
    pub(crate) fn close(&self, end: &End) {
        self.table().closed = Some(end.clone());
        for entry in self.all() {
            entry.handle.close(end.clone());
        }
    }

    /// Every stream.
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.table().entries.values().cloned().collect()
    }

    /// How many streams there are.
    pub(crate) fn len(&self) -> usize {
        self.table().entries.len()
    }

    /// Resolves when there is no stream any more, or was none for a moment since it was asked last.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn emptied(&self) {
        self.empty.notified().await;
    }

    /// The stream called `id`.
    pub(crate) fn find(&self, id: &StreamId) -> Option<Arc<Entry>> {
        self.table().entries.get(id).cloned()
    }

    /// How many streams wait for their path.
    pub(crate) fn pending(&self) -> usize {
        self.table().pending
    }

    /// How many of the streams are commands.
    pub(crate) fn execs(&self) -> usize {
        self.table().execs
    }

    /// What was carried, by streams that have ended and by those that are open.
    pub(crate) fn carried(&self) -> Carried {
        let table = self.table();
        table
            .entries
            .values()
            .fold(table.ended, |sum, entry| sum.plus(entry.progress()))
    }

    fn check(&self, table: &Table, subject: &Subject) -> Result<(), End> {
        let sandbox = &subject.sandbox;
        let is_exec = subject.kind() == Kind::Exec;
        let counts = table.counts.get(sandbox).copied().unwrap_or_default();
        let limits = &self.limits;
        let refused = |reason, message: String| {
            let end = End::new(Origin::Gateway, reason, message);
            Err(end.retry_after(Duration::from_secs(1)))
        };
        if table.entries.len() >= limits.streams {
            let message = format!(
                "this gateway has {} streams open, its limit",
                limits.streams
            );
            refused(Reason::LimitStreams, message)
        } else if counts.streams >= limits.per_sandbox {
            let message = format!(
                "sandbox {sandbox} has {} streams open, its limit",
                limits.per_sandbox
            );
            refused(Reason::LimitStreams, message)
        } else if is_exec && table.execs >= limits.execs {
            let message = format!(
                "this gateway carries {} commands, its limit (max_execs)",
                limits.execs
            );
            refused(Reason::LimitExecs, message)
        } else if is_exec && counts.execs >= limits.execs_per_sandbox {
            let message = format!(
                "sandbox {sandbox} runs {} commands, its limit (max_execs_per_sandbox)",
                limits.execs_per_sandbox
            );
            refused(Reason::LimitExecs, message)
        } else if counts.pending >= limits.pending {
            let message = format!(
                "{} streams wait for sandbox {sandbox} already, the limit",
                limits.pending
            );
            refused(Reason::LimitPending, message)
        } else if self.buffered.get() > limits.buffered {
            let message = "this gateway holds as many bytes for slow readers as it may".to_owned();
            refused(Reason::LimitMemory, message)
        } else {
            Ok(())
        }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn free_id(&self) -> StreamId {
        loop {
            let id = format!("{:012x}", rand::random::<u64>() >> 16);
            if !self.entries.contains_key(id.as_str()) {
                return StreamId::new(id);
            }
        }
    }

    fn count(&mut self, sandbox: &SandboxName, change: impl FnOnce(&mut Counts)) {
        if let Some(counts) = self.counts.get_mut(sandbox) {
            change(counts);
            if counts.streams == 0 && counts.pending == 0 {
                self.counts.remove(sandbox);
            }
        }
    }
}

impl Carried {
    const fn plus(self, progress: Progress) -> Self {
        Self {
            up: self.up + progress.bytes_up,
            down: self.down + progress.bytes_down,
        }
    }
}

/// A stream's place. Dropping it gives the place back, whatever became of the stream.
#[derive(Debug)]
pub(crate) struct StreamGuard {
    streams: Arc<Streams>,
    entry: Arc<Entry>,
    outcome: Option<Cause>,
}

impl StreamGuard {
    /// The stream's name.
    pub(crate) fn id(&self) -> &StreamId {
        &self.entry.id
    }

    /// Whether a client of this gateway has it, and not another gateway.
    pub(crate) fn is_a_clients(&self) -> bool {
        self.entry.subject.requester.is_none()
    }

    /// The stream has ended.
    pub(crate) fn finish(mut self, outcome: &Outcome) {
        self.outcome = Some(outcome.cause());
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let entry = &self.entry;
        let mut table = self.streams.table();
        table.entries.remove(&entry.id);
        let execs = usize::from(entry.kind() == Kind::Exec);
        table.execs -= execs;
        table.count(&entry.subject.sandbox, |counts| {
            counts.streams -= 1;
            counts.execs -= execs;
        });
        table.ended = table.ended.plus(entry.progress());
        if table.entries.is_empty() {
            self.streams.empty.notify_one();
        }
        drop(table);
        // Without an outcome the stream's task panicked, or its thread was stopped under it.
        let cause = self.outcome.unwrap_or(Cause::Reset {
            origin: Origin::Gateway,
            reason: Reason::InternalError,
        });
        self.streams.metrics.ended(entry.kind(), cause);
    }
}

/// A stream's place among those that wait for their path.
#[derive(Debug)]
pub(crate) struct PendingGuard {
    streams: Arc<Streams>,
    entry: Arc<Entry>,
    born: Instant,
    route: Option<Route>,
}

impl PendingGuard {
    /// The path is open, and leads to another gateway if `owner` says so.
    pub(crate) fn opened(mut self, owner: Option<&GatewayId>) {
        self.route = Some(match owner {
            None => Route::Local,
            Some(owner) => {
                // A path is opened once.
                let _ = self.entry.owner.set(owner.clone());
                Route::Peer
            }
        });
    }
}

impl Drop for PendingGuard {
    fn drop(&mut self) {
        let mut table = self.streams.table();
        table.pending -= 1;
        table.count(&self.entry.subject.sandbox, |counts| counts.pending -= 1);
        drop(table);
        let (metrics, kind) = (&self.streams.metrics, self.entry.kind());
        match self.route {
            Some(route) => metrics.opened(kind, route, self.born.elapsed()),
            None => metrics.never_opened(kind),
        }
    }
}
