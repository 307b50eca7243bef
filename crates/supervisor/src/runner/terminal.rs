//! The terminal of a command that wants one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::process::{Pid, Signal, kill_process_group};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{
    InputModes, LocalModes, SpecialCodeIndex, Termios, Winsize, tcgetattr, tcgetpgrp, tcsetwinsize,
};
use tidegate_lifecycle::exec::TerminalSize;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::ready::watch_end;

/// What a terminal calls itself if the caller does not say.
pub(super) const DEFAULT_TERM: (&str, &str) = ("TERM", "xterm");

/// Our side of a terminal.
#[derive(Clone, Debug)]
pub(super) struct Terminal(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// Opens a terminal of a size; the second file is the command's.
    pub(super) fn open(size: TerminalSize) -> io::Result<(Self, OwnedFd)> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        unlockpt(&ours)?;
        // Not by its name: another file system may be mounted where that leads.
        let theirs = ioctl_tiocgptpeer(&ours, flags)?;
        tcsetwinsize(&ours, winsize(size))?;
        let both = Interest::READABLE | Interest::WRITABLE;
        Ok((Self(Arc::new(watch_end(ours, both)?)), theirs))
    }

    /// The file to read and write.
    pub(super) fn file(&self) -> &Arc<AsyncFd<OwnedFd>> {
        &self.0
    }

    /// Changes the size; the kernel tells the foreground group.
    pub(super) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        Ok(tcsetwinsize(self.0.get_ref(), winsize(size))?)
    }

    /// Signals the foreground group; says whether there is one.
    pub(super) fn signal(&self, signal: Signal) -> bool {
        let group: rustix::io::Result<Pid> = tcgetpgrp(self.0.get_ref());
        group.is_ok_and(|group| kill_process_group(group, signal).is_ok())
    }

    /// What to write so that its reader sees the end of its input.
    pub(super) fn end_of_input(&self, line: &Line) -> Vec<u8> {
        tcgetattr(self.0.get_ref()).map_or_else(|_| Vec::new(), |modes| line.end(&modes))
    }

    /// Keeps `line` up to date with what was written.
    pub(super) fn wrote(&self, line: &mut Line, bytes: &[u8]) {
        if let Ok(modes) = tcgetattr(self.0.get_ref()) {
            line.add(&modes, bytes);
        }
    }
}

/// The line that is being typed: whether there is anything on it.
#[derive(Debug, Default)]
pub(super) struct Line {
    is_pending: bool,
}

impl Line {
    fn add(&mut self, modes: &Termios, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.is_pending = !ends_line(modes, *last);
        }
    }

    /// With bytes on the line, the first VEOF only hands them over: it takes another for the end.
    fn end(&self, modes: &Termios) -> Vec<u8> {
        let end = modes.special_codes[SpecialCodeIndex::VEOF];
        if end == DISABLED || !modes.local_modes.contains(LocalModes::ICANON) {
            return Vec::new();
        }
        vec![end; 1 + usize::from(self.is_pending)]
    }
}

/// The code of a special character that there is not.
const DISABLED: u8 = 0;

fn ends_line(modes: &Termios, byte: u8) -> bool {
    let codes = [
        SpecialCodeIndex::VEOF,
        SpecialCodeIndex::VEOL,
        SpecialCodeIndex::VEOL2,
    ];
    match byte {
        b'\n' => true,
        b'\r' => modes.input_modes.contains(InputModes::ICRNL),
        DISABLED => false,
        byte => codes
            .into_iter()
            .any(|code| modes.special_codes[code] == byte),
    }
}

const fn winsize(size: TerminalSize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}
