//! The nursery itself: one thread, which waits until somebody is wanted.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{getpid, setsid};
use rustix::thread::set_name;

use super::Kind;
use super::fork::{Forked, Parent, fork, fork_into};
use crate::runner::scope::reaper;
use crate::runner::{door, launch, socket};

/// Runs until the supervisor is gone.
pub(in crate::runner) fn run() -> i32 {
    let Ok(supervisor) = begin() else { return 1 };
    loop {
        let mut kind = [0];
        match socket::receive(&supervisor, &mut kind) {
            Ok((0, _)) => return 0,
            Ok((_, files)) => {
                if let Some((kind, socket)) = bear(kind[0], files) {
                    drop(supervisor);
                    return live(kind, socket);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return 1,
        }
    }
}

fn begin() -> io::Result<OwnedFd> {
    // For whoever lists processes: the reapers have the same command line.
    set_name(c"tidegate-nurse")?;
    let supervisor = door::take_stdin()?;
    // What makes the supervisor stop is not meant for us.
    door::block_endings()?;
    setsid()?;
    Ok(supervisor)
}

/// Forks; returns something in the one who is born.
fn bear(kind: u8, files: Vec<OwnedFd>) -> Option<(Kind, UnixStream)> {
    let mut files = files.into_iter();
    let mut socket = UnixStream::from(files.next()?);
    let cgroup = files.next();
    let kind = Kind::decode(kind)?;
    let born = match &cgroup {
        Some(cgroup) => bear_in(cgroup),
        None => fork(Parent::Same).map(|forked| (forked, Ok(()))),
    };
    match born {
        Ok((Forked::Parent(_), _)) => None,
        Ok((Forked::Child, Ok(()))) => Some((kind, socket)),
        Ok((Forked::Child, Err(error))) => {
            say(&mut socket, -error.raw_os_error());
            std::process::exit(1)
        }
        Err(error) => {
            say(&mut socket, -error.raw_os_error());
            None
        }
    }
}

/// Forks into a cgroup; the second error is of a child that could not enter it.
fn bear_in(cgroup: &OwnedFd) -> Result<(Forked, Result<(), Errno>), Errno> {
    match fork_into(cgroup) {
        Err(Errno::NOSYS | Errno::PERM | Errno::INVAL | Errno::TOOBIG) => {}
        forked => return forked.map(|forked| (forked, Ok(()))),
    }
    let forked = fork(Parent::Same)?;
    let entered = match forked {
        Forked::Parent(_) => Ok(()),
        Forked::Child => enter(cgroup),
    };
    Ok((forked, entered))
}

fn enter(cgroup: &OwnedFd) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    let procs = openat(cgroup, "cgroup.procs", flags, Mode::empty())?;
    rustix::io::write(procs, b"0").map(drop)
}

fn live(kind: Kind, mut socket: UnixStream) -> i32 {
    say(&mut socket, getpid().as_raw_pid());
    match kind {
        Kind::Launcher => launch::program::run(socket),
        Kind::Reaper => reaper::program::run(socket),
    }
}

/// Tells the supervisor who was born, or why nobody was.
fn say(socket: &mut UnixStream, number: i32) {
    // If the supervisor is gone, whoever has the socket hears that next.
    let _ = socket.write_all(&number.to_le_bytes());
}
