//! The supervisor's binary under another name: the small programs that stand between it and a
//! command.
//!
//! They are separate processes because they must outlive the supervisor, or become the command.
//! They are the same binary because a sandbox may hold nothing else. A program that runs commands
//! calls [`enter`] before it does anything: before flags, logs and threads.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::{SigSet, Signal};
use rustix::fs::{Mode, OFlags};

use super::nursery;
use super::scope::{cgroup, watcher};

/// What stands at the place of a flag when the binary is run as one of the small programs.
const SIGN: &str = "--tidegate-runner";

/// Whether this process can be re-executed: its `main` has gone through [`enter`].
static HAS_DOOR: AtomicBool = AtomicBool::new(false);

/// One of the small programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Launchers and reapers are copies of it.
    Nursery,
    /// Outlives the supervisor and ends what it has left running.
    Watcher,
    /// Tries whether it may enter a cgroup.
    Probe,
}

impl Role {
    const ALL: [Self; 3] = [Self::Nursery, Self::Watcher, Self::Probe];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Nursery => "nursery",
            Self::Watcher => "watcher",
            Self::Probe => "probe",
        }
    }

    fn play(self, argument: Option<&OsStr>) -> i32 {
        match self {
            Self::Nursery => nursery::program::run(),
            Self::Watcher => watcher::program::run(argument.map(Path::new)),
            Self::Probe => cgroup::probe::run(),
        }
    }
}

/// Runs one of the runner's small programs, and exits, if this process was started as one.
///
/// Otherwise it returns at once, and the program may make a [`Runner`](super::Runner).
pub fn enter() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() != Some(OsStr::new(SIGN)) {
        HAS_DOOR.store(true, Ordering::Relaxed);
        return;
    }
    let name = arguments.next();
    let role = Role::ALL
        .into_iter()
        .find(|role| name.as_deref() == Some(OsStr::new(role.as_str())));
    let argument = arguments.next();
    close_inherited();
    std::process::exit(role.map_or(2, |role| role.play(argument.as_deref())));
}

/// Closes what the supervisor has itself inherited, and was not asked to hand on: a command must not
/// find it, and what outlives the supervisor must not keep it.
fn close_inherited() {
    let files = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let files: Vec<RawFd> = files
        .filter_map(|it| it.file_name().to_str()?.parse().ok())
        .collect();
    for file in files.into_iter().filter(|file| *file > 2) {
        // The list's own file is closed already. Nothing else has been opened yet.
        let _ = nix::unistd::close(file);
    }
}

/// Takes the socket that a small program was started with; what it starts itself finds nothing.
pub(super) fn take_stdin() -> io::Result<OwnedFd> {
    let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let null = rustix::fs::open("/dev/null", OFlags::RDWR, Mode::empty())?;
    rustix::stdio::dup2_stdin(null)?;
    Ok(socket)
}

/// Keeps away what makes programs stop.
pub(super) fn block_endings() -> io::Result<()> {
    let mut blocked = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        blocked.add(signal);
    }
    Ok(blocked.thread_block()?)
}

/// The binary that has the door: the one that was named, or else this process's own.
pub(super) fn binary(named: Option<&Path>) -> io::Result<PathBuf> {
    if let Some(path) = named {
        return Ok(path.to_owned());
    }
    if HAS_DOOR.load(Ordering::Relaxed) {
        // Not by its path: an upgrade may have put another binary there.
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "this program cannot run commands: it has no door for the runner's small programs",
    ))
}

/// The command line of a small program whose standard input is `input`.
pub(super) fn command(
    binary: &Path,
    role: Role,
    argument: Option<OsString>,
    input: OwnedFd,
) -> Command {
    let mut command = Command::new(binary);
    command
        .arg0("tidegate-runner")
        .arg(SIGN)
        .arg(role.as_str())
        .args(argument)
        .env_clear()
        .stdin(Stdio::from(input))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}
