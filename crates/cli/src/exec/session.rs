//! A command that runs: what is typed and signalled here goes there, what it writes comes here.

mod shown;
mod speaker;

use std::io::{self, IsTerminal};
use std::time::Duration;

use tidegate_client::exec::{Collected, Events, Exec, Outcome, Started};

use self::shown::Shown;
use self::speaker::{Leave, Speaker};
use super::terminal::Raw;
use super::{Args, OURS};
use crate::failure::Failure;
use crate::output::Console;
use crate::signals::Signals;

/// The code of a program that wrote where nobody reads: 128 and SIGPIPE.
const PIPE: i32 = 141;
/// How long the news that we go may take: if it does not get through, that we are gone says the same.
const FAREWELL: Duration = Duration::from_millis(300);

/// This side of a command that runs.
pub(super) struct Session<'a> {
    speaker: Speaker,
    /// Set while the terminal is ours.
    raw: bool,
    console: &'a Console,
}

impl<'a> Session<'a> {
    /// Takes the terminal, if the command has one of its own and stdin is one.
    pub(super) fn new(
        args: &Args,
        started: &Started,
        signals: Signals,
        console: &'a Console,
    ) -> Result<Self, Failure> {
        let is_terminal = io::stdin().is_terminal();
        if args.interactive && args.tty && !is_terminal {
            console.note(
                "warning: stdin is no terminal, and the command's would change what it brings: \
                 leave -t out for data",
            );
        }
        let types = args.interactive && args.tty && is_terminal;
        let raw = types.then(Raw::enter).transpose();
        let raw = raw.map_err(|error| Failure::io("take the terminal", error))?;
        Ok(Self {
            raw: raw.is_some(),
            speaker: Speaker::new(args, started, signals, raw),
            console,
        })
    }

    /// Shows what the command writes, until it has ended.
    pub(super) async fn show(self, exec: Exec) -> Result<Outcome, Failure> {
        let show = async |events: &mut Events| match shown::show(events).await {
            Ok(Shown::All) => Ok(events.wait().await),
            Ok(Shown::ReaderGone) => Err(Failure::Ended(PIPE)),
            Err(error) => Err(Failure::io("write the output", error)),
        };
        self.run(exec, show).await
    }

    /// Keeps what the command writes, at most `limit` bytes of each output.
    pub(super) async fn collect(self, exec: Exec, limit: usize) -> Result<Collected, Failure> {
        let collect = async |events: &mut Events| Ok(events.collect(limit).await);
        self.run(exec, collect).await
    }

    async fn run<T>(
        self,
        exec: Exec,
        hear: impl AsyncFnOnce(&mut Events) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Self {
            mut speaker,
            raw,
            console,
        } = self;
        let (mut input, mut events) = exec.split();
        let heard = tokio::select! {
            heard = hear(&mut events) => heard,
            leave = speaker.speak(&mut input) => Err(match leave {
                Leave::Signal(code) => Failure::Stopped(code),
                Leave::TypedOut => Failure::Ended(OURS),
                Leave::NoStdin(error) => Failure::io("read stdin", error),
            }),
        };
        // First the terminal, so that everything said about the end can be read.
        drop(speaker);
        if heard.is_err() {
            input.cancel();
        }
        let outcome = tokio::time::timeout(FAREWELL, events.wait()).await;
        if raw && outcome.map_or(true, |outcome| outcome.exit().is_none()) {
            // Nobody knows where the cursor stands.
            console.note("");
        }
        if let Err(Failure::Ended(OURS)) = &heard {
            console.note("You have left; the command is made to end.");
        }
        heard
    }
}
