//! A terminal for a program that asks whether it has one.

use std::fs::File;
use std::io::{self, Write as _};
use std::process::Stdio;

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

/// What ends a line of a terminal's input without a line: end of file.
const END_OF_TRANSMISSION: &[u8] = &[4];

/// The keyboard of a pseudoterminal whose other end is a program's standard input.
///
/// It is no one's controlling terminal, so that keys are input and never signals. Dropped, it hangs
/// up.
#[derive(Debug)]
pub struct Terminal(File);

impl Terminal {
    /// Opens one, with the end that a program gets.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub fn open() -> io::Result<(Self, Stdio)> {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&keyboard)?;
        unlockpt(&keyboard)?;
        let name = ptsname(&keyboard, Vec::new())?;
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let line = open(name, flags, Mode::empty())?;
        Ok((Self(keyboard.into()), line.into()))
    }

    /// Types keys as they are.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub fn type_keys(&mut self, keys: &str) -> io::Result<()> {
        self.0.write_all(keys.as_bytes())
    }

    /// Gives its window another size. Nobody is signalled: it controls no process.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub fn resize(&self, cols: u16, rows: u16) -> io::Result<()> {
        let size = Winsize {
            ws_col: cols,
            ws_row: rows,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        Ok(tcsetwinsize(&self.0, size)?)
    }

    /// Returns everything that raw mode changes, to be compared.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub fn modes(&self) -> io::Result<String> {
        let modes = tcgetattr(&self.0)?;
        let flags = (modes.input_modes, modes.output_modes, modes.local_modes);
        Ok(format!("{flags:?}"))
    }

    /// Types a line.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub fn type_line(&mut self, line: &str) -> io::Result<()> {
        self.0.write_all(format!("{line}\n").as_bytes())
    }

    /// Types Ctrl-D at the beginning of a line.
    ///
    /// # Errors
    ///
    /// Whatever the kernel says.
    pub fn type_end(&mut self) -> io::Result<()> {
        self.0.write_all(END_OF_TRANSMISSION)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::process::Process;
    use crate::wait::GENEROUS;

    #[tokio::test]
    async fn a_program_sees_a_terminal_and_what_is_typed() {
        let (mut terminal, stdin) = Terminal::open().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "test -t 0 && echo terminal && exec cat"]);
        command.stdin(stdin);
        let process = Process::spawn(command).unwrap();
        process.line("terminal").await;
        terminal.type_line("typed").unwrap();
        process.line("typed").await;
        terminal.type_end().unwrap();
        assert!(process.exit(GENEROUS).await.success(), "{process}");
    }
}
