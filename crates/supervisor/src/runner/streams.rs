//! The standard streams of a command.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::pipe::{PipeFlags, pipe_with};
use tidegate_lifecycle::exec::TerminalSize;
use tokio::io::Interest;

use super::output::Pipe;
use super::ready::watch_end;
use super::stdin::Inlet;
use super::terminal::Terminal;

/// Whether anybody will write to a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// Somebody may.
    Open,
    /// Nobody will.
    Empty,
}

/// Our ends of a command's standard streams.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) terminal: Option<Terminal>,
    pub(super) input: Arc<Inlet>,
    /// Stdout and stderr, or a terminal's one output.
    pub(super) outputs: Vec<Arc<Pipe>>,
}

impl Streams {
    /// Opens them: our ends, and the command's.
    pub(super) fn open(
        terminal: Option<TerminalSize>,
        input: Input,
    ) -> io::Result<(Self, Vec<OwnedFd>)> {
        match terminal {
            Some(size) => Self::terminal(size),
            None => Self::pipes(input),
        }
    }

    fn pipes(input: Input) -> io::Result<(Self, Vec<OwnedFd>)> {
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let output = |file| {
            let file = Arc::new(watch_end(file, Interest::READABLE)?);
            io::Result::Ok(Arc::new(Pipe::new(file, false)))
        };
        let (stdin, stdin_end) = pipe()?;
        let (stdout, stdout_end) = pipe()?;
        let (stderr, stderr_end) = pipe()?;
        let streams = Self {
            terminal: None,
            input: Arc::new(match input {
                Input::Open => Inlet::pipe(watch_end(stdin_end, Interest::WRITABLE)?),
                Input::Empty => Inlet::closed(),
            }),
            outputs: vec![output(stdout)?, output(stderr)?],
        };
        Ok((streams, vec![stdin, stdout_end, stderr_end]))
    }

    fn terminal(size: TerminalSize) -> io::Result<(Self, Vec<OwnedFd>)> {
        let (terminal, theirs) = Terminal::open(size)?;
        let streams = Self {
            input: Arc::new(Inlet::Terminal(terminal.clone())),
            outputs: vec![Arc::new(Pipe::new(Arc::clone(terminal.file()), true))],
            terminal: Some(terminal),
        };
        Ok((streams, vec![theirs]))
    }
}
