//! Where commands write.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write, stderr, stdout};

use clap::ValueEnum;
use serde::Serialize;

use super::style::{Colour, Style};
use crate::failure::Failure;

/// For whom the output is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// Stdout and stderr, in the form that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Console {
    format: Format,
    out: Style,
    err: Style,
}

impl Console {
    pub(crate) fn new(format: Format, colour: Colour) -> Self {
        Self {
            format,
            out: colour.on(&stdout()),
            err: colour.on(&stderr()),
        }
    }

    /// Whether a program reads the output.
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// The colours of stdout.
    pub(crate) const fn style(&self) -> Style {
        self.out
    }

    /// Writes to stdout, at once. A line end is added.
    pub(crate) fn line(&self, text: impl Display) -> Result<(), Failure> {
        written(write(stdout().lock(), &format!("{text}\n")))
    }

    /// Writes one object or array to stdout, in one line.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value).map_err(|e| Failure::io("write JSON", e.into()))?;
        self.line(text)
    }

    /// Tells a person something beside the output.
    pub(crate) fn note(&self, text: impl Display) {
        // Who closed stderr does not want to know.
        let _ = write(stderr().lock(), &format!("{text}\n"));
    }

    /// Whether somebody sees a line that changes.
    pub(crate) fn shows_progress(&self) -> bool {
        !self.is_json() && stderr().is_terminal()
    }

    /// Draws the line that changes anew, on stderr; nothing takes it away.
    pub(crate) fn redraw(&self, line: &str) {
        let _ = write(stderr().lock(), &format!("\r\u{1b}[K{line}"));
    }

    /// Says why it did not work, to a person.
    pub(crate) fn sentence(&self, failure: &Failure) {
        if let Some(sentence) = failure.sentence() {
            self.note(format_args!("{} {sentence}", self.err.red("error:")));
        }
    }

    /// Says why it did not work: a sentence for a person, an object for a program.
    pub(crate) fn failure(&self, failure: &Failure) -> Result<(), Failure> {
        match failure.json().filter(|_| self.is_json()) {
            Some(value) => self.json(&value),
            None => {
                self.sentence(failure);
                Ok(())
            }
        }
    }
}

/// Tells a person something before there is a command to tell it.
pub(crate) fn remark(text: impl Display) {
    // Who closed stderr does not want to know.
    let _ = write(stderr().lock(), &format!("{text}\n"));
}

fn write(mut stream: impl Write, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

fn written(result: io::Result<()>) -> Result<(), Failure> {
    result.map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::io("write the output", error),
    })
}
