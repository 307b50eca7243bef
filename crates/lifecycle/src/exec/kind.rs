//! What one message of an execution is about, as far as its rules go.

use std::fmt;

use super::Output;

/// What a message of an execution is, without what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The command; it runs on a terminal or on pipes.
    Start {
        /// It asks for a terminal.
        tty: bool,
    },
    /// So many bytes of stdin.
    Stdin(usize),
    /// No more of stdin follows.
    StdinFin,
    /// The caller's terminal has another size.
    Resize,
    /// A signal, by its number.
    Signal(i32),
    /// Whether the command runs.
    Started(bool),
    /// So many bytes that the command has written.
    Output(Output, usize),
    /// The command ended, with this code. Nothing follows.
    Exit(i32),
    /// Nothing, said so that no one on the way takes silence for death.
    Empty,
    /// Something that was not negotiated.
    Unknown,
}

impl Kind {
    /// How many payload bytes the message carries.
    pub const fn len(self) -> usize {
        match self {
            Self::Stdin(len) | Self::Output(_, len) => len,
            Self::Start { .. }
            | Self::StdinFin
            | Self::Resize
            | Self::Signal(_)
            | Self::Started(_)
            | Self::Exit(_)
            | Self::Empty
            | Self::Unknown => 0,
        }
    }

    /// Whether it carries no payload bytes.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Start { .. } => "a start",
            Self::Stdin(_) => "stdin",
            Self::StdinFin => "the end of stdin",
            Self::Resize => "a resize",
            Self::Signal(_) => "a signal",
            Self::Started(_) => "the outcome of the start",
            Self::Output(Output::Stdout, _) => "stdout",
            Self::Output(Output::Stderr, _) => "stderr",
            Self::Exit(_) => "an exit",
            Self::Empty => "an empty message",
            Self::Unknown => "a message without a known payload",
        })
    }
}
