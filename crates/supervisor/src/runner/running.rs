//! A command that runs, in the hands of whoever asked for it.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use rustix::process::Signal;
use tidegate_lifecycle::exec::{KillScope, TerminalSize};
use tokio::sync::mpsc;

use super::events::{Event, Events};
use super::kill::Why;
use super::progress::Progress;
use super::stdin::Stdin;
use super::terminal::Terminal;

/// A command that runs. Dropping it ends the command and all of its descendants, and waits for
/// nothing.
#[derive(Debug)]
pub struct Running {
    pub(super) control: Control,
    pub(super) stdin: Stdin,
    pub(super) events: Events,
}

impl Running {
    /// How far the end of its descendants reaches.
    pub const fn scope(&self) -> KillScope {
        self.control.scope
    }

    /// A handle that signals, resizes and ends it, and keeps nothing alive.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Its halves, to read and to write at the same time. The command ends with [`Events`].
    pub fn split(self) -> (Control, Stdin, Events) {
        (self.control, self.stdin, self.events)
    }

    /// Waits for the next event; see [`Events::next`].
    ///
    /// # Cancel safety
    ///
    /// Safe: nothing is lost.
    pub async fn next(&mut self) -> Option<Event> {
        self.events.next().await
    }

    /// Writes to its input; see [`Stdin::write`].
    ///
    /// Nobody reads its outputs meanwhile: with more than a few bytes, [`split`](Self::split) it.
    pub async fn write_stdin(&mut self, bytes: Bytes) {
        self.stdin.write(bytes).await;
    }

    /// Ends its input; see [`Stdin::close`].
    pub async fn close_stdin(&mut self) {
        self.stdin.close().await;
    }
}

/// Signals, resizes and ends a command.
#[derive(Clone, Debug)]
pub struct Control {
    pub(super) scope: KillScope,
    pub(super) terminal: Option<Terminal>,
    pub(super) signals: mpsc::Sender<Signal>,
    pub(super) progress: Arc<Progress>,
}

impl Control {
    /// How far the end of the command's descendants reaches.
    pub const fn scope(&self) -> KillScope {
        self.scope
    }

    /// Changes the size of the terminal, and tells the program in the foreground.
    ///
    /// # Errors
    ///
    /// `Unsupported` if there is no terminal.
    pub fn resize(&self, size: TerminalSize) -> io::Result<()> {
        let terminal = self.terminal.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        terminal.resize(size)
    }

    /// Signals the terminal's foreground group, or else the command's group. After the command's
    /// end, and while more signals wait than anybody can tell apart, nothing happens.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if there is no signal of that number.
    pub fn signal(&self, number: i32) -> io::Result<()> {
        let signal = Signal::from_named_raw(number).ok_or(io::ErrorKind::InvalidInput)?;
        let _ = self.signals.try_send(signal);
        Ok(())
    }

    /// Ends the command and all of its descendants. The first reason counts.
    pub fn kill(&self, why: Why) {
        self.progress.kill(why);
    }
}
