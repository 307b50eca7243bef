//! The directory of a single gateway.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use async_trait::async_trait;
use tidegate_lifecycle::id::{Generation, SandboxName};

use crate::record::{Present, Record};
use crate::{
    Claim, Claimed, Directory, DirectoryError, Home, Knowledge, SandboxEntry, Watch, Watchers,
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

/// Sandboxes and sessions in this process's memory.
#[derive(Debug)]
pub struct Memory {
    settings: MemorySettings,
    born: Instant,
    table: Mutex<Table>,
    watchers: Watchers,
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
        Self {
            settings,
            born: now,
            table: Mutex::new(Table {
                records: BTreeMap::new(),
                last: 0,
                swept: now,
            }),
            watchers: Watchers::default(),
        }
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
impl Directory for Memory {
    async fn claim(&self, claim: Claim) -> Result<Claimed, DirectoryError> {
        let now = Instant::now();
        let Claim {
            sandbox,
            session,
            instance,
            gateway,
            peer_url,
        } = claim;
        Ok(self.change(&sandbox, |table| {
            table.sweep(self.settings.retention, now);
            let generation = table.next_generation();
            let home = Home {
                gateway,
                session,
                instance,
                generation,
                peer_url,
            };
            let replaced = table
                .present(&sandbox, now)
                .claim(home, now, SystemTime::now());
            Claimed {
                generation,
                replaced: replaced.into_iter().collect(),
            }
        }))
    }

    async fn release(
        &self,
        sandbox: &SandboxName,
        generation: Generation,
    ) -> Result<bool, DirectoryError> {
        let (now, wall) = (Instant::now(), SystemTime::now());
        Ok(
            self.change(sandbox, |table| match table.records.get_mut(sandbox) {
                Some(Record::Present(present)) => present.release(generation, now, wall),
                Some(Record::Deleted(_)) | None => false,
            }),
        )
    }

    async fn homes(&self, sandbox: &SandboxName) -> Result<Vec<Home>, DirectoryError> {
        let table = self.table();
        let present = table.records.get(sandbox).and_then(Record::present);
        Ok(present.map(Present::homes).unwrap_or_default())
    }

    async fn known(&self, sandbox: &SandboxName) -> Result<Knowledge, DirectoryError> {
        let now = Instant::now();
        let table = self.table();
        let record = table
            .records
            .get(sandbox)
            .filter(|record| self.is_fresh(record, now));
        Ok(match record {
            Some(Record::Present(_)) => Knowledge::Known,
            Some(Record::Deleted(_)) => Knowledge::Deleted,
            None if self.is_unsure(now) => Knowledge::Unsure,
            None => Knowledge::Unknown,
        })
    }

    async fn declare(&self, sandbox: &SandboxName) -> Result<(), DirectoryError> {
        let now = Instant::now();
        self.change(sandbox, |table| table.present(sandbox, now).declare());
        Ok(())
    }

    async fn forget(&self, sandbox: &SandboxName) -> Result<Option<SandboxEntry>, DirectoryError> {
        let now = Instant::now();
        let unsure = self.is_unsure(now);
        Ok(self.change(sandbox, |table| {
            let old = table.records.remove(sandbox);
            let entry = old
                .as_ref()
                .and_then(Record::present)
                .map(|it| it.entry(sandbox));
            if old.is_some() || unsure {
                table.records.insert(sandbox.clone(), Record::Deleted(now));
            }
            entry
        }))
    }

    async fn entry(&self, sandbox: &SandboxName) -> Result<Option<SandboxEntry>, DirectoryError> {
        let now = Instant::now();
        let table = self.table();
        let record = table
            .records
            .get(sandbox)
            .filter(|record| self.is_fresh(record, now));
        Ok(record
            .and_then(Record::present)
            .map(|present| present.entry(sandbox)))
    }

    async fn list(&self) -> Result<Vec<SandboxEntry>, DirectoryError> {
        let now = Instant::now();
        let table = self.table();
        let fresh = table
            .records
            .iter()
            .filter(|(_, record)| self.is_fresh(record, now));
        Ok(fresh
            .filter_map(|(name, record)| Some(record.present()?.entry(name)))
            .collect())
    }

    async fn watch(&self, sandbox: &SandboxName) -> Result<Watch, DirectoryError> {
        Ok(self.watchers.watch(sandbox))
    }
}
