//! The cgroup of a supervisor, in which those of its commands are.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::group::{Group, below};
use super::mount;
use crate::runner::child::Children;
use crate::runner::door::{self, Role};

/// What the names of all supervisors' cgroups begin with.
const PREFIX: &str = "tidegate-";

/// How many cgroups that were left behind are looked at when another is.
const TIDY: usize = 16;

/// How long the members of a killed cgroup may take to die.
const DYING: Duration = Duration::from_secs(1);

/// The cgroup of this supervisor.
#[derive(Debug)]
pub(in crate::runner) struct Home {
    path: PathBuf,
    /// Locked: this supervisor lives.
    _lock: File,
    next: AtomicU64,
    /// What commands have left behind.
    left: Mutex<VecDeque<Group>>,
}

impl Home {
    /// Makes one below our own cgroup, tries it, and clears away what dead supervisors have left.
    pub(in crate::runner) fn find(binary: &Path, children: &Children) -> io::Result<Self> {
        let own = mount::own()?;
        for path in below(&own).filter(|path| is_home(path)) {
            clear(&path);
        }
        let home = Self::create(&own)?;
        home.try_it(binary, children).inspect_err(|_| {
            let _ = fs::remove_dir(&home.path);
        })?;
        Ok(home)
    }

    fn create(own: &Path) -> io::Result<Self> {
        loop {
            let path = own.join(format!("{PREFIX}{}", uuid::Uuid::new_v4().simple()));
            fs::create_dir(&path)?;
            let lock = File::open(&path)?;
            flock(&lock, FlockOperation::LockExclusive)?;
            // Another that starts may have taken it for a dead one's before it was locked.
            let same =
                |there: fs::Metadata| lock.metadata().is_ok_and(|it| it.ino() == there.ino());
            if fs::metadata(&path).is_ok_and(same) {
                return Ok(Self {
                    path,
                    _lock: lock,
                    next: AtomicU64::new(0),
                    left: Mutex::default(),
                });
            }
        }
    }

    fn try_it(&self, binary: &Path, children: &Children) -> io::Result<()> {
        let group = self.create_group("probe")?;
        let tried = (|| {
            File::options()
                .write(true)
                .open(self.path.join("probe/cgroup.kill"))?;
            let procs = group.procs()?;
            let mut probe = door::command(binary, Role::Probe, None, procs.into());
            children.spawn(&mut probe)?.wait_blocking()
        })();
        group.wait_empty(DYING);
        group.remove();
        match tried? {
            0 => Ok(()),
            _ => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "no process can be moved to a cgroup below our own",
            )),
        }
    }

    /// Where it is.
    pub(in crate::runner) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes a cgroup for a command.
    pub(super) fn create_exec(&self) -> io::Result<Group> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.create_group(&format!("exec-{number}"))
    }

    fn create_group(&self, name: &str) -> io::Result<Group> {
        Group::create(self.path.join(name))
    }

    /// Takes over what a command has left behind, to remove it when it is empty.
    pub(super) fn left_behind(&self, group: Group) {
        self.left().push_back(group);
        self.tidy();
    }

    /// Removes some of what commands have left behind, where nobody is in it any more.
    pub(super) fn tidy(&self) {
        let mut left = self.left();
        for _ in 0..TIDY.min(left.len()) {
            let Some(group) = left.pop_front() else {
                return;
            };
            if group.is_populated() {
                left.push_back(group);
            } else {
                group.remove();
            }
        }
    }

    fn left(&self) -> MutexGuard<'_, VecDeque<Group>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        end_abandoned(&self.path);
    }
}

fn is_home(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(PREFIX))
}

/// Clears a home away if its supervisor is dead.
fn clear(path: &Path) {
    let Ok(lock) = File::open(path) else { return };
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
        end_abandoned(path);
    }
}

/// Kills every command in a home whose supervisor is dead, and leaves alone what commands that
/// ended by themselves have left behind.
pub(in crate::runner) fn end_abandoned(path: &Path) {
    let groups: Vec<_> = below(path).map(Group::at).collect();
    let running = || groups.iter().filter(|group| !group.has_ended());
    running().for_each(Group::kill);
    running().for_each(|group| group.wait_empty(DYING));
    groups.iter().for_each(Group::remove);
    // In use, it stays; whoever starts next looks at it again.
    let _ = fs::remove_dir(path);
}
