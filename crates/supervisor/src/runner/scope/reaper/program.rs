//! The reaper: a process with one thread, the parent of a command and of all that it leaves.

use std::collections::HashSet;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal as Blocked};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process, kill_process_group,
    set_child_subreaper, setsid, wait,
};

use rustix::thread::set_name;

use super::record::{RECORD, Said, Told};
use super::scan::{Process, descendants};
use crate::runner::child::Ending;
use crate::runner::launch;
use crate::runner::nursery::{Forked, Parent, fork};
use crate::runner::scope::{AFTER_KILL, Manner};

/// Between two searches for processes that have escaped the last one.
const SEARCH_AGAIN: Duration = Duration::from_millis(10);

/// Runs until the tree has ended or is left alone.
pub(in crate::runner) fn run(control: UnixStream) -> i32 {
    match Reaper::begin(control) {
        Ok(mut reaper) => reaper.run(),
        Err(_) => 1,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The command runs, or has ended and nobody has said what becomes of the rest.
    Watching,
    /// TERM was sent.
    Asking { until: Instant },
    /// What is found is killed.
    Killing { until: Instant },
}

#[derive(Debug)]
struct Reaper {
    control: UnixStream,
    connected: bool,
    signals: SignalFd,
    /// The command; reaped as soon as it has ended.
    command: Option<Pid>,
    /// Its group's id, for as long as anybody is in it.
    group: Option<Pid>,
    manner: Manner,
    kill_background: bool,
    /// Held open so that the supervisor's death is not the end of the command's input.
    input: Option<OwnedFd>,
    phase: Phase,
}

impl Reaper {
    fn begin(mut control: UnixStream) -> io::Result<Self> {
        set_name(c"tidegate-reaper")?;
        let signals = watch_children()?;
        // Away from the supervisor's group and terminal: what is sent there is not meant for us.
        setsid()?;
        set_child_subreaper(Some(getpid()))?;
        let mut bytes = [0; RECORD];
        let (received, files) = crate::runner::socket::receive(&control, &mut bytes)?;
        control.read_exact(&mut bytes[received..])?;
        let mut files = files.into_iter();
        let (
            Some(Told::Setup {
                manner,
                kill_background,
            }),
            Some(launcher),
        ) = (Told::decode(bytes), files.next())
        else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        let mut reaper = Self {
            control,
            connected: true,
            signals,
            command: None,
            group: None,
            manner,
            kill_background,
            input: files.next(),
            phase: Phase::Watching,
        };
        reaper.spawn(launcher.into())?;
        Ok(reaper)
    }

    /// Makes a launcher. What is ours and open it has as well, until it becomes the command.
    fn spawn(&mut self, launcher: UnixStream) -> io::Result<()> {
        match fork(Parent::This) {
            Ok(Forked::Child) => std::process::exit(launch::program::run(launcher)),
            Ok(Forked::Parent(id)) => {
                self.command = Pid::from_raw(id);
                self.group = self.command;
                Ok(())
            }
            Err(error) => {
                self.say(Said::SpawnFailed(error.raw_os_error()));
                Err(error.into())
            }
        }
    }

    fn run(&mut self) -> i32 {
        loop {
            let alone = self.reap();
            match self.phase {
                Phase::Asking { .. } | Phase::Killing { .. } if alone => {
                    self.say(Said::Gone { leftover: 0 });
                    return 0;
                }
                Phase::Watching | Phase::Asking { .. } | Phase::Killing { .. } => {}
            }
            if self.is_late() {
                match self.phase {
                    Phase::Watching | Phase::Asking { .. } => {
                        let until = Instant::now() + AFTER_KILL;
                        self.phase = Phase::Killing { until };
                    }
                    Phase::Killing { .. } => {
                        let leftover = descendants(getpid()).len();
                        self.say(Said::Gone {
                            leftover: u32::try_from(leftover).unwrap_or(u32::MAX),
                        });
                        return 0;
                    }
                }
            }
            if matches!(self.phase, Phase::Killing { .. }) {
                kill_all();
            }
            if self.wait() && !self.listen() {
                return 0;
            }
        }
    }

    /// Reaps whoever has ended; says whether nobody is left.
    fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if Some(pid) == self.command => {
                    self.command = None;
                    self.say(Said::Ended(ending(status)));
                }
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => return false,
                Err(_) => return true,
            }
        }
    }

    fn is_late(&self) -> bool {
        match self.phase {
            Phase::Watching => false,
            Phase::Asking { until } | Phase::Killing { until } => until <= Instant::now(),
        }
    }

    /// Waits for a child's end, a record or the time to act; says whether there is a record.
    fn wait(&self) -> bool {
        let timeout = match self.phase {
            Phase::Watching => None,
            Phase::Asking { until } => Some(until.saturating_duration_since(Instant::now())),
            Phase::Killing { .. } => Some(SEARCH_AGAIN),
        };
        let timeout = timeout.and_then(|it| Timespec::try_from(it).ok());
        let control = self.control.as_fd();
        let interest = if self.connected {
            PollFlags::IN
        } else {
            PollFlags::empty()
        };
        let mut ready = [
            PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(control, interest),
        ];
        let ready = &mut ready[..if self.connected { 2 } else { 1 }];
        // An interrupted wait is a short one.
        let _ = poll(ready, timeout.as_ref());
        // What ended is found by asking for it: the signal itself says nothing.
        while let Ok(Some(_)) = self.signals.read_signal() {}
        ready
            .get(1)
            .is_some_and(|control| !control.revents().is_empty())
    }

    /// Does as it is told; says whether there is anything left to do.
    fn listen(&mut self) -> bool {
        let mut bytes = [0; RECORD];
        let told = self
            .control
            .read_exact(&mut bytes)
            .ok()
            .and_then(|()| Told::decode(bytes));
        match told {
            Some(Told::Signal(signal)) => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    self.signal(signal);
                }
            }
            Some(Told::CloseInput) => self.input = None,
            Some(Told::End(manner)) => self.end(manner),
            Some(Told::Leave) => return false,
            Some(Told::Setup { .. }) | None => return self.abandon(),
        }
        true
    }

    /// The supervisor is gone.
    fn abandon(&mut self) -> bool {
        self.connected = false;
        if self.command.is_none() && !self.kill_background && self.phase == Phase::Watching {
            return false;
        }
        if self.phase == Phase::Watching {
            self.end(self.manner);
        }
        true
    }

    fn end(&mut self, manner: Manner) {
        for signal in manner.signals() {
            self.signal(*signal);
        }
        self.phase = Phase::Asking {
            until: Instant::now() + manner.grace,
        };
    }

    /// Signals the command's group.
    fn signal(&self, signal: Signal) {
        let Some(group) = self.group else { return };
        if self.command.is_some() {
            // Not reaped: its id is nobody else's.
            if kill_process_group(group, signal).is_err() {
                let _ = kill_process(group, signal);
            }
            return;
        }
        let members = descendants(getpid()).into_iter();
        let members = members.filter(|it| it.group == group.as_raw_pid());
        for member in members.filter_map(Process::open) {
            member.signal(signal);
        }
    }

    fn say(&mut self, said: Said) {
        // Nobody listens if the supervisor is gone.
        let _ = self.control.write_all(&said.encode());
    }
}

/// Stops everybody, so that nobody sees another's death and acts on it, and then kills them.
fn kill_all() {
    let mut seen = HashSet::new();
    let mut stopped = Vec::new();
    loop {
        let found = descendants(getpid()).into_iter();
        let new: Vec<_> = found.filter(|it| seen.insert(it.pid)).collect();
        if new.is_empty() {
            break;
        }
        // Who has ended meanwhile, or may not be signalled, is found again or is not.
        for process in new.into_iter().filter_map(Process::open) {
            process.signal(Signal::STOP);
            stopped.push(process);
        }
    }
    for process in stopped {
        process.signal(Signal::KILL);
    }
}

fn ending(status: WaitStatus) -> Ending {
    status.terminating_signal().map_or_else(
        || Ending::Code(status.exit_status().unwrap_or_default()),
        Ending::Signal,
    )
}

/// Has the news of a child's end come through a file.
fn watch_children() -> io::Result<SignalFd> {
    let mut children = SigSet::empty();
    children.add(Blocked::SIGCHLD);
    children.thread_block()?;
    Ok(SignalFd::with_flags(
        &children,
        SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC,
    )?)
}
