//! One cgroup.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{XattrFlags, getxattr, setxattr};

/// The attribute of a cgroup whose command has ended by itself: who is in it may stay.
const ENDED: &str = "user.tidegate.ended";

/// A cgroup that was made for a command.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    /// Makes one.
    pub(super) fn create(path: PathBuf) -> io::Result<Self> {
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// One that exists.
    pub(super) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// The cgroup itself, to be born in.
    pub(super) fn open(&self) -> io::Result<File> {
        File::open(&self.0)
    }

    /// The file through which a process enters.
    pub(super) fn procs(&self) -> io::Result<File> {
        File::options()
            .write(true)
            .open(self.0.join("cgroup.procs"))
    }

    /// The file that tells when the last one leaves.
    pub(super) fn events(&self) -> io::Result<File> {
        File::open(self.0.join("cgroup.events"))
    }

    /// Whether a process that is not dead is in it, or below it.
    pub(super) fn is_populated(&self) -> bool {
        self.events().is_ok_and(|events| is_populated(&events))
    }

    /// Kills all that are in it, or below it.
    pub(super) fn kill(&self) {
        let kill = File::options().write(true).open(self.0.join("cgroup.kill"));
        // It may be gone.
        let _ = kill.and_then(|mut kill| kill.write_all(b"1"));
    }

    /// Notes that its command has ended by itself.
    pub(super) fn mark_ended(&self) {
        if let Err(error) = setxattr(&self.0, ENDED, b"1", XattrFlags::empty()) {
            tracing::debug!(%error, "a cgroup cannot be marked: what is in it ends with us");
        }
    }

    /// Whether its command has ended by itself.
    pub(super) fn has_ended(&self) -> bool {
        getxattr(&self.0, ENDED, &mut [0_u8; 1][..]).is_ok()
    }

    /// How many processes are in it, or below it.
    pub(super) fn members(&self) -> u32 {
        let own = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        let own = u32::try_from(own.lines().count()).unwrap_or(u32::MAX);
        let below = below(&self.0).map(|path| Self(path).members());
        below.fold(own, u32::saturating_add)
    }

    /// Waits until nobody is in it.
    pub(super) fn wait_empty(&self, patience: Duration) {
        let Ok(events) = self.events() else { return };
        let timeout = Timespec::try_from(patience).ok();
        while is_populated(&events) {
            let mut ready = [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::PRI)];
            if poll(&mut ready, timeout.as_ref()).is_ok_and(|ready| ready == 0) {
                return;
            }
        }
    }

    /// Removes it, and what its members have made below it. In use, it stays.
    pub(super) fn remove(&self) {
        remove(&self.0);
    }

    /// Removes it if nobody is in it and nothing below it; says whether it is gone.
    pub(super) fn remove_empty(&self) -> bool {
        fs::remove_dir(&self.0).is_ok()
    }
}

fn is_populated(events: &File) -> bool {
    let mut text = [0; 256];
    let read = events.read_at(&mut text, 0).unwrap_or_default();
    let mut lines = text[..read].split(|byte| *byte == b'\n');
    lines.any(|line| line == b"populated 1")
}

fn remove(path: &Path) {
    if fs::remove_dir(path).is_err() && path.exists() {
        below(path).for_each(|path| remove(&path));
        let _ = fs::remove_dir(path);
    }
}

/// The cgroups one step below.
pub(super) fn below(path: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir()))
        .map(|entry| entry.path())
}
