//! What is said to a command and by one.

use bytes::Bytes;
use tidegate_lifecycle::End;
use tidegate_lifecycle::exec::{Exit, KillScope, Kind, Output, TerminalSize};
use tidegate_lifecycle::limits::MAX_FRAME;

use super::Start;

/// In which messages items travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Those of ExecSandbox and ExecSandboxInteractive.
    Client,
    /// Those of RelayStream, and of PeerRelay, which are the same bytes.
    Relay,
}

/// Which way items travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the command.
    Input,
    /// From the command.
    Event,
}

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// To the command: what to run.
    Start(Box<Start>),
    /// To the command: bytes for its stdin. Empty only if the peer's message was.
    Stdin(Bytes),
    /// To the command: no more stdin follows.
    StdinFin,
    /// To the command: its terminal has another size.
    Resize(TerminalSize),
    /// To the command: a signal, by its number.
    Signal(i32),
    /// From the command: it runs, or why it does not.
    Started(Result<KillScope, Box<End>>),
    /// From the command: bytes that it wrote.
    Output {
        /// To which of its outputs.
        output: Output,
        /// The bytes. Empty only if the peer's message was.
        data: Bytes,
        /// Counts the items of this output from 1; 0 where nobody counts.
        sequence: u64,
        /// Counts the items of both outputs from 1; 0 where nobody counts.
        order: u64,
    },
    /// From the command: how it ended.
    Exit(Box<Exit>),
    /// A message without any field.
    Empty,
    /// A message without any field that belongs here.
    Unknown,
}

impl Item {
    /// What the item is, as far as rules go.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Start(start) => Kind::Start {
                tty: start.command.terminal.is_some(),
            },
            Self::Stdin(data) => Kind::Stdin(data.len()),
            Self::StdinFin => Kind::StdinFin,
            Self::Resize(_) => Kind::Resize,
            Self::Signal(number) => Kind::Signal(*number),
            Self::Started(outcome) => Kind::Started(outcome.is_ok()),
            Self::Output { output, data, .. } => Kind::Output(*output, data.len()),
            Self::Exit(exit) => Kind::Exit(exit.code),
            Self::Empty => Kind::Empty,
            Self::Unknown => Kind::Unknown,
        }
    }

    /// How many payload bytes it carries, for credit. The stdin inside a start does not count: see
    /// [`pieces`](Self::pieces).
    pub fn weight(&self) -> usize {
        self.kind().len()
    }

    /// The same in items of at most 64 KiB of payload; a start's stdin follows it as items.
    pub fn pieces(self) -> Pieces {
        let (first, made_of, payload) = match self {
            Self::Start(mut start) => {
                let stdin = std::mem::take(&mut start.stdin);
                (Some(Self::Start(start)), Payload::Stdin, stdin)
            }
            Self::Stdin(data) if data.len() > MAX_FRAME => (None, Payload::Stdin, data),
            Self::Output {
                output,
                data,
                sequence,
                order,
            } if data.len() > MAX_FRAME => {
                let made_of = Payload::Output {
                    output,
                    sequence,
                    order,
                };
                (None, made_of, data)
            }
            small => (Some(small), Payload::Stdin, Bytes::new()),
        };
        Pieces {
            first,
            made_of,
            payload,
        }
    }
}

/// An item in pieces. None of them holds a copy.
#[derive(Debug)]
pub struct Pieces {
    first: Option<Item>,
    made_of: Payload,
    payload: Bytes,
}

/// What a payload becomes.
#[derive(Clone, Copy, Debug)]
enum Payload {
    Stdin,
    Output {
        output: Output,
        sequence: u64,
        order: u64,
    },
}

impl Iterator for Pieces {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        if self.payload.is_empty() {
            return None;
        }
        let data = self.payload.split_to(self.payload.len().min(MAX_FRAME));
        Some(match self.made_of {
            Payload::Stdin => Item::Stdin(data),
            Payload::Output {
                output,
                sequence,
                order,
            } => Item::Output {
                output,
                data,
                sequence,
                order,
            },
        })
    }
}
