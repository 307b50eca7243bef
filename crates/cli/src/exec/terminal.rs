//! The terminal here: its size, and raw mode with a way back from everywhere.

use tidegate_client::exec::TerminalSize;

/// Raw mode, until it is dropped: keys are bytes, not signals, and nothing is echoed here.
#[derive(Debug)]
pub(super) struct Raw(());

impl Raw {
    /// Enters raw mode. A panic leaves it before it is told.
    pub(super) fn enter() -> std::io::Result<Self> {
        system::enter()?;
        static HOOK: std::sync::Once = std::sync::Once::new();
        HOOK.call_once(|| {
            let tell = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                system::leave();
                tell(panic);
            }));
        });
        Ok(Self(()))
    }

    /// Enters raw mode again: whoever had the terminal meanwhile has left it as they like it.
    pub(super) fn again(&self) {
        // A terminal that is gone needs no mode.
        let _ = system::enter();
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        system::leave();
    }
}

/// The size of the terminal that stdin, stdout or stderr is.
pub(super) fn size() -> Option<TerminalSize> {
    system::size()
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::os::fd::AsFd;
    use std::sync::{Mutex, PoisonError};

    use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
    use tidegate_client::exec::TerminalSize;

    /// How the terminal was before.
    static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

    pub(super) fn enter() -> io::Result<()> {
        let mut before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner);
        let stdin = io::stdin();
        let current = tcgetattr(&stdin)?;
        let mut raw = current.clone();
        raw.make_raw();
        tcsetattr(&stdin, OptionalActions::Now, &raw)?;
        before.get_or_insert(current);
        Ok(())
    }

    pub(super) fn leave() {
        let before = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(before) = before {
            // A terminal that is gone needs no mode.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
    }

    pub(super) fn size() -> Option<TerminalSize> {
        fn of(terminal: impl AsFd) -> Option<TerminalSize> {
            let size = tcgetwinsize(terminal).ok()?;
            let (cols, rows) = (size.ws_col, size.ws_row);
            (cols > 0 && rows > 0).then_some(TerminalSize { cols, rows })
        }
        of(io::stdin())
            .or_else(|| of(io::stdout()))
            .or_else(|| of(io::stderr()))
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;

    use tidegate_client::exec::TerminalSize;

    pub(super) fn enter() -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) const fn leave() {}

    pub(super) const fn size() -> Option<TerminalSize> {
        None
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::{Command, Stdio};

    use tidegate_testkit::process::Terminal;

    use super::*;

    /// The program of the next test: it is in raw mode, and nothing but the panic gets it out.
    #[test]
    #[ignore = "it is run by another test, with a terminal"]
    fn panics() {
        let raw = Raw::enter().unwrap();
        let size = size().unwrap();
        std::mem::forget(raw);
        panic!("in raw mode, {} by {}", size.cols, size.rows);
    }

    #[test]
    fn cli_05_a_panic_is_told_on_a_terminal_that_is_as_it_was() {
        let (terminal, stdin) = Terminal::open().unwrap();
        terminal.resize(132, 43).unwrap();
        let before = terminal.modes().unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--ignored",
            "--exact",
            "exec::terminal::tests::panics",
            "--nocapture",
        ]);
        command
            .stdin(stdin)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let output = command.spawn().unwrap().wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("in raw mode, 132 by 43"), "{said}");
        assert_eq!(terminal.modes().unwrap(), before);
    }
}
