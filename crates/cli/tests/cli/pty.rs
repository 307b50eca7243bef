//! A terminal that a person sits at, and what can be seen of it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

/// The person's side.
pub(crate) struct Pty(File);

impl Pty {
    /// A terminal of 132×43, and the end that a program gets.
    pub(crate) fn open() -> io::Result<(Self, Stdio)> {
        let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&person)?;
        unlockpt(&person)?;
        let name = ptsname(&person, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line: OwnedFd = open(name, flags, Mode::empty())?;
        let pty = Self(person.into());
        pty.resize(132, 43)?;
        Ok((pty, line.into()))
    }

    pub(crate) fn resize(&self, cols: u16, rows: u16) -> io::Result<()> {
        let size = Winsize {
            ws_col: cols,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.0, size)?)
    }

    pub(crate) fn type_keys(&mut self, keys: &str) -> io::Result<()> {
        self.0.write_all(keys.as_bytes())
    }

    /// Everything that raw mode changes, as text.
    pub(crate) fn modes(&self) -> io::Result<String> {
        let modes = tcgetattr(&self.0)?;
        let flags = (modes.input_modes, modes.output_modes, modes.local_modes);
        Ok(format!("{flags:?}"))
    }
}
