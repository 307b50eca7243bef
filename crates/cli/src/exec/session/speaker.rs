//! What is said to the command: stdin, the window's size, signals.

use std::io;

use tidegate_client::exec::{Input, Started};
use tokio::io::{AsyncReadExt, Stdin};

use super::super::Args;
use super::super::escape::Watch;
use super::super::terminal::{self, Raw};
use crate::signals::{Signal, Signals};

/// The most that is read from stdin at a time.
const READ: usize = 64 * 1024;
/// SIGINT, as Linux numbers it.
const INTERRUPT: i32 = 2;
/// SIGQUIT, likewise.
const QUIT: i32 = 3;

/// Speaks to a command for the person and the programs on this side.
pub(super) struct Speaker {
    signals: Signals,
    stdin: Option<Stdin>,
    watch: Option<Watch>,
    raw: Option<Raw>,
    has_tty: bool,
    takes_signals: bool,
    interrupted: bool,
}

/// Why this side ends the session.
#[derive(Debug)]
pub(super) enum Leave {
    /// A signal that ends a program with this code.
    Signal(i32),
    /// The escape was typed.
    TypedOut,
    /// Stdin cannot be read, and its end must not be made up.
    NoStdin(io::Error),
}

/// What happened here.
enum Heard {
    Signal(Signal),
    Typed(io::Result<usize>),
    /// The command has room for what waits, or takes nothing any more.
    Room(bool),
}

impl Speaker {
    pub(super) fn new(args: &Args, started: &Started, signals: Signals, raw: Option<Raw>) -> Self {
        Self {
            signals,
            stdin: args.interactive.then(tokio::io::stdin),
            watch: raw.is_some().then(|| Watch::new(args.escape_char)),
            raw,
            has_tty: args.tty,
            takes_signals: started.takes_signals(),
            interrupted: false,
        }
    }

    /// Speaks until this side wants to leave, which it may never.
    pub(super) async fn speak(&mut self, input: &mut Input) -> Leave {
        let mut buffer = vec![0; READ];
        let mut waiting = Vec::new();
        loop {
            let heard = tokio::select! {
                signal = self.signals.next() => Heard::Signal(signal),
                room = input.ready(), if !waiting.is_empty() => Heard::Room(room.is_ok()),
                typed = read(&mut self.stdin, &mut buffer), if waiting.is_empty() => {
                    Heard::Typed(typed)
                }
            };
            match heard {
                Heard::Signal(signal) => {
                    if let Some(leave) = self.signalled(signal, input) {
                        return leave;
                    }
                }
                Heard::Room(true) => input.write_now(std::mem::take(&mut waiting)),
                Heard::Room(false) => {
                    // How it ended is for the other half to say.
                    waiting.clear();
                    self.stdin = None;
                }
                Heard::Typed(Ok(len)) if len > 0 => {
                    let out = self.typed(&buffer[..len], &mut waiting);
                    if out {
                        return Leave::TypedOut;
                    }
                }
                Heard::Typed(Ok(_)) => {
                    self.stdin = None;
                    input.close();
                }
                Heard::Typed(Err(error)) => return Leave::NoStdin(error),
            }
        }
    }

    /// Takes what was typed. Says whether it was the way out.
    fn typed(&mut self, typed: &[u8], waiting: &mut Vec<u8>) -> bool {
        match &mut self.watch {
            None => waiting.extend_from_slice(typed),
            Some(watch) => {
                let typed = watch.take(typed);
                waiting.extend(typed.pass);
                return typed.out;
            }
        }
        false
    }

    fn signalled(&mut self, signal: Signal, input: &mut Input) -> Option<Leave> {
        match signal {
            Signal::Interrupt => {
                let again = std::mem::replace(&mut self.interrupted, true);
                if again || !self.takes_signals {
                    return Some(Leave::Signal(130));
                }
                input.signal(INTERRUPT);
            }
            Signal::Quit if self.takes_signals => input.signal(QUIT),
            Signal::Quit => return Some(Leave::Signal(131)),
            Signal::Terminate => return Some(Leave::Signal(143)),
            Signal::Hangup => return Some(Leave::Signal(129)),
            Signal::Resized => self.resize(input),
            Signal::Continued => {
                if let Some(raw) = &self.raw {
                    raw.again();
                }
                self.resize(input);
            }
        }
        None
    }

    fn resize(&self, input: &mut Input) {
        if let Some(size) = terminal::size().filter(|_| self.has_tty) {
            input.resize(size);
        }
    }
}

/// Reads what stdin brings; for ever if there is none.
async fn read(stdin: &mut Option<Stdin>, buffer: &mut [u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.read(buffer).await,
        None => std::future::pending().await,
    }
}
