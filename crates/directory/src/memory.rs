//! The directory of the gateways of one process: of one, as a rule.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use tidegate_lifecycle::id::{Generation, SandboxName, SessionId};

use crate::inbox::Inbox;
use crate::record::{Present, Record, Row};
use crate::{
    Claim, Claimed, Directory, DirectoryError, Event, Home, Incarnation, Knowledge, Replica,
    SandboxEntry, Watch, Watchers,
};

/// Names are looked through for old ones this many times in their retention.
const SWEEPS: u32 = 64;

/// How long a [`Memory`] remembers, and how long it is unsure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    /// How long a name without a session is kept. 7 days.
    pub retention: Duration,
    /// How long after the start a name that was never seen may yet turn out to be one. 60 s.
    pub grace: Duration,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            retention: Duration::from_secs(7 * 24 * 3600),
            grace: Duration::from_secs(60),
        }
    }
}

/// Sandboxes and sessions in this process's memory. Clones are the same directory.
#[derive(Clone, Debug)]
pub struct Memory(Arc<Shared>);

/// A gateway's seat in a [`Memory`]. Dropping it is to [leave](Directory::leave).
#[derive(Debug)]
pub struct MemorySeat {
    shared: Arc<Shared>,
    replica: Arc<Replica>,
    inbox: Arc<Inbox>,
}

#[derive(Debug)]
struct Shared {
    settings: MemorySettings,
    born: Instant,
    table: Mutex<Table>,
    watchers: Watchers,
    inboxes: Mutex<HashMap<Incarnation, Arc<Inbox>>>,
}

#[derive(Debug)]
struct Table {
    records: BTreeMap<SandboxName, Record>,
    last: u64,
    swept: Instant,
}

impl Memory {
    /// An empty directory, which begins to be sure after its grace period.
    pub fn new(settings: MemorySettings) -> Self {
        let now = Instant::now();
        Self(Arc::new(Shared {
            settings,
            born: now,
            table: Mutex::new(Table {
                records: BTreeMap::new(),
                last: 0,
                swept: now,
            }),
            watchers: Watchers::default(),
            inboxes: Mutex::default(),
        }))
    }

    /// A seat for a gateway that begins to run.
    pub fn seat(&self, replica: Replica) -> MemorySeat {
        let inbox = Arc::new(Inbox::default());
        let incarnation = replica.incarnation.clone();
        self.0.inboxes().insert(incarnation, Arc::clone(&inbox));
        MemorySeat {
            shared: Arc::clone(&self.0),
            replica: Arc::new(replica),
            inbox,
        }
    }
}

impl Shared {
    fn inboxes(&self) -> MutexGuard<'_, HashMap<Incarnation, Arc<Inbox>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the gateways whose sessions `rows` are, but not the one that did it.
    fn tell(&self, rows: &[Row], by: &Replica, event: impl Fn(SessionId) -> Event) {
        let inboxes = self.inboxes();
        let others = rows
            .iter()
            .filter(|row| row.replica.incarnation != by.incarnation);
        for row in others {
            if let Some(inbox) = inboxes.get(&row.replica.incarnation) {
                inbox.push(event(row.held.session.clone()));
            }
        }
    }

    fn vacate(&self, incarnation: &Incarnation) {
        self.inboxes().remove(incarnation);
        let mut touched = Vec::new();
        for (name, record) in &mut self.table().records {
            match record {
                Record::Present(present) => {
                    if present.lapse(incarnation) {
                        touched.push(name.clone());
                    }
                }
                Record::Deleted(_) => {}
            }
        }
        touched.iter().for_each(|name| self.watchers.wake(name));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, sandbox: &SandboxName, change: impl FnOnce(&mut Table) -> T) -> T {
        let changed = change(&mut self.table());
        self.watchers.wake(sandbox);
        changed
    }

    fn is_fresh(&self, record: &Record, now: Instant) -> bool {
        !record.is_stale(self.settings.retention, now)
    }

    fn is_unsure(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.born) < self.settings.grace
    }
}

impl Table {
    fn present(&mut self, sandbox: &SandboxName, now: Instant) -> &mut Present {
        let wall = SystemTime::now();
        let fresh = || Record::Present(Present::new(now, wall));
        self.records
            .entry(sandbox.clone())
            .or_insert_with(fresh)
            .revive(now, wall)
    }

    fn next_generation(&mut self) -> Generation {
        self.last += 1;
        Generation::new(self.last)
    }

    fn sweep(&mut self, retention: Duration, now: Instant) {
        if now.saturating_duration_since(self.swept) >= retention / SWEEPS {
            self.swept = now;
            self.records
                .retain(|_, record| !record.is_stale(retention, now));
        }
    }
}

#[async_trait]
impl Directory for MemorySeat {
    async fn claim(&self, claim: Claim) -> Result<Claimed, DirectoryError> {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let retention = self.shared.settings.retention;
        let (generation, changed) = self.shared.change(&claim.sandbox, |table| {
            table.sweep(retention, now);
            let generation = table.next_generation();
            let present = table.present(&claim.sandbox, now);
            let changed = present.claim(&claim, generation, &self.replica, now, wall);
            (generation, changed)
        });
        self.shared
            .tell(&changed.ended, &self.replica, |session| Event::Ended {
                session,
                by: claim.instance.clone(),
            });
        let drained = |session| Event::Drained { session };
        self.shared.tell(&changed.drained, &self.replica, drained);
        Ok(Claimed {
            generation,
            ended: changed.ended.iter().map(Row::home).collect(),
            drained: changed.drained.iter().map(Row::home).collect(),
        })
    }

    async fn release(
        &self,
        sandbox: &SandboxName,
        session: &SessionId,
    ) -> Result<bool, DirectoryError> {
        let (now, wall) = (Instant::now(), SystemTime::now());
        let release = |table: &mut Table| match table.records.get_mut(sandbox) {
            Some(Record::Present(present)) => present.release(session, now, wall),
            Some(Record::Deleted(_)) | None => false,
        };
        Ok(self.shared.change(sandbox, release))
    }

    async fn homes(&self, sandbox: &SandboxName) -> Result<Vec<Home>, DirectoryError> {
        let table = self.shared.table();
        let present = table.records.get(sandbox).and_then(Record::present);
        Ok(present.map(Present::homes).unwrap_or_default())
    }

    async fn known(&self, sandbox: &SandboxName) -> Result<Knowledge, DirectoryError> {
        let now = Instant::now();
        let table = self.shared.table();
        let record = table
            .records
            .get(sandbox)
            .filter(|record| self.shared.is_fresh(record, now));
        Ok(match record {
            Some(Record::Present(_)) => Knowledge::Known,
            Some(Record::Deleted(_)) => Knowledge::Deleted,
            None if self.shared.is_unsure(now) => Knowledge::Unsure,
            None => Knowledge::Unknown,
        })
    }

    async fn declare(&self, sandbox: &SandboxName) -> Result<(), DirectoryError> {
        let now = Instant::now();
        self.shared
            .change(sandbox, |table| table.present(sandbox, now).declare());
        Ok(())
    }

    async fn forget(&self, sandbox: &SandboxName) -> Result<Option<SandboxEntry>, DirectoryError> {
        let now = Instant::now();
        let unsure = self.shared.is_unsure(now);
        let (entry, rows) = self.shared.change(sandbox, |table| {
            let old = table.records.remove(sandbox);
            if old.is_some() || unsure {
                table.records.insert(sandbox.clone(), Record::Deleted(now));
            }
            let present = old.as_ref().and_then(Record::present);
            let rows = present.map(|it| it.rows().to_vec()).unwrap_or_default();
            (present.map(|it| it.entry(sandbox)), rows)
        });
        let forgotten = |session| Event::Forgotten { session };
        self.shared.tell(&rows, &self.replica, forgotten);
        Ok(entry)
    }

    async fn entry(&self, sandbox: &SandboxName) -> Result<Option<SandboxEntry>, DirectoryError> {
        let now = Instant::now();
        let table = self.shared.table();
        let record = table
            .records
            .get(sandbox)
            .filter(|record| self.shared.is_fresh(record, now));
        Ok(record
            .and_then(Record::present)
            .map(|present| present.entry(sandbox)))
    }

    async fn list(&self) -> Result<Vec<SandboxEntry>, DirectoryError> {
        let now = Instant::now();
        let table = self.shared.table();
        let fresh = table
            .records
            .iter()
            .filter(|(_, record)| self.shared.is_fresh(record, now));
        Ok(fresh
            .filter_map(|(name, record)| Some(record.present()?.entry(name)))
            .collect())
    }

    async fn watch(&self, sandbox: &SandboxName) -> Result<Watch, DirectoryError> {
        Ok(self.shared.watchers.watch(sandbox))
    }

    async fn next_event(&self) -> Event {
        self.inbox.next().await
    }

    async fn leave(&self) -> Result<(), DirectoryError> {
        self.shared.vacate(&self.replica.incarnation);
        Ok(())
    }
}

impl Drop for MemorySeat {
    fn drop(&mut self) {
        self.shared.vacate(&self.replica.incarnation);
    }
}
