//! One execution as it is seen from one hop: what may be said next, and by whom.
//!
//! ```text
//! AwaitStart ─start─▶ Starting ─started─▶ Running ─exit─▶ Draining ─delivered─▶ Exited ─▶ Closed
//!                        └────not started────▶ Refused ─────────────────────────────────▶ Closed
//! ```
//!
//! `Starting` and `Running` know whether more of stdin may come. Output ends with the exit, which is
//! said once; what the caller says behind it crossed it in flight and is ignored.

use std::fmt;

use thiserror::Error;

use super::Kind;
use crate::cause::Cause;
use crate::joint::Side;

/// Whether more of stdin may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// It may.
    Open,
    /// Its end was said.
    Closed,
}

/// An execution on one hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing but a start is legal yet.
    AwaitStart,
    /// The start was passed on; nobody starts it a second time.
    Starting(Input),
    /// The command runs.
    Running(Input),
    /// The command could not be started, and the caller is being told.
    Refused,
    /// The command has ended; its last output and its exit are on their way to the caller.
    Draining,
    /// The caller has the exit; the last word of the hop beyond is awaited.
    Exited,
    /// The stream is over.
    Closed(Cause),
}

/// Something that is not legal in the state it found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{kind} is not legal {}", .state.situation(*.side))]
pub struct Violation {
    /// The state it found.
    pub state: State,
    /// Who said it.
    pub side: Side,
    /// What was said.
    pub kind: Kind,
}

/// What a message means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It goes on to the other side, and this is the state then.
    Pass(State),
    /// It says nothing, or comes too late.
    Ignore,
}

impl State {
    /// A message came from `side`.
    ///
    /// # Errors
    ///
    /// When that side may not say it now.
    pub fn hear(self, side: Side, kind: Kind) -> Result<Step, Violation> {
        let step = match side {
            Side::Downstream => self.hear_caller(kind),
            Side::Upstream => self.hear_process(kind),
        };
        step.ok_or(Violation {
            state: self,
            side,
            kind,
        })
    }

    /// Whether the exit, or the refusal, was heard: nothing that the caller says matters any more.
    pub const fn is_over(self) -> bool {
        match self {
            Self::Refused | Self::Draining | Self::Exited | Self::Closed(_) => true,
            Self::AwaitStart | Self::Starting(_) | Self::Running(_) => false,
        }
    }

    /// Whether the caller may say more of stdin.
    pub const fn takes_stdin(self) -> bool {
        matches!(
            self,
            Self::Starting(Input::Open) | Self::Running(Input::Open)
        )
    }

    /// The word used in JSON and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitStart | Self::Starting(_) => "opening",
            Self::Running(Input::Open) => "open",
            Self::Running(Input::Closed) => "upstream-finished",
            Self::Refused | Self::Draining | Self::Exited => "downstream-finished",
            Self::Closed(_) => "closed",
        }
    }

    /// The same state once stdin has ended.
    #[must_use]
    pub const fn without_stdin(self) -> Self {
        match self {
            Self::Starting(_) => Self::Starting(Input::Closed),
            Self::Running(_) => Self::Running(Input::Closed),
            Self::AwaitStart | Self::Refused | Self::Draining | Self::Exited | Self::Closed(_) => {
                self
            }
        }
    }

    /// The same state once the command runs.
    #[must_use]
    pub const fn running(self) -> Self {
        match self {
            Self::Starting(input) => Self::Running(input),
            Self::AwaitStart
            | Self::Running(_)
            | Self::Refused
            | Self::Draining
            | Self::Exited
            | Self::Closed(_) => self,
        }
    }

    fn hear_caller(self, kind: Kind) -> Option<Step> {
        if self.is_over() {
            return Some(Step::Ignore);
        }
        let stdin_open = self.takes_stdin();
        let started = self != Self::AwaitStart;
        match kind {
            Kind::Start { .. } => (!started).then_some(Step::Pass(Self::Starting(Input::Open))),
            Kind::Stdin(0) if stdin_open => Some(Step::Ignore),
            Kind::Stdin(_) => stdin_open.then_some(Step::Pass(self)),
            Kind::StdinFin => stdin_open.then_some(Step::Pass(self.without_stdin())),
            Kind::Resize | Kind::Signal(_) => started.then_some(Step::Pass(self)),
            Kind::Empty => started.then_some(Step::Ignore),
            Kind::Started(_) | Kind::Output(..) | Kind::Exit(_) | Kind::Unknown => None,
        }
    }

    fn hear_process(self, kind: Kind) -> Option<Step> {
        if matches!(self, Self::Closed(_)) {
            return Some(Step::Ignore);
        }
        let starting = matches!(self, Self::Starting(_));
        let running = matches!(self, Self::Running(_));
        match kind {
            Kind::Started(true) => starting.then_some(Step::Pass(self.running())),
            Kind::Started(false) => starting.then_some(Step::Pass(Self::Refused)),
            Kind::Output(_, 0) if running => Some(Step::Ignore),
            Kind::Output(..) => running.then_some(Step::Pass(self)),
            Kind::Exit(_) => running.then_some(Step::Pass(Self::Draining)),
            Kind::Empty => Some(Step::Ignore),
            Kind::Start { .. }
            | Kind::Stdin(_)
            | Kind::StdinFin
            | Kind::Resize
            | Kind::Signal(_)
            | Kind::Unknown => None,
        }
    }

    const fn situation(self, side: Side) -> &'static str {
        match (self, side) {
            (Self::AwaitStart, _) => "before the start",
            (Self::Starting(_), Side::Upstream) => "before the outcome of the start",
            (Self::Starting(Input::Closed) | Self::Running(Input::Closed), Side::Downstream) => {
                "after the end of stdin"
            }
            (Self::Starting(Input::Open) | Self::Running(Input::Open), Side::Downstream)
            | (Self::Running(_), Side::Upstream) => "while the command runs",
            (Self::Refused, _) => "after a failed start",
            (Self::Draining | Self::Exited, _) => "after the exit",
            (Self::Closed(_), _) => "on a closed stream",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::Output;

    #[test]
    fn every_state_answers_every_message() {
        let states = [
            State::AwaitStart,
            State::Starting(Input::Open),
            State::Starting(Input::Closed),
            State::Running(Input::Open),
            State::Running(Input::Closed),
            State::Refused,
            State::Draining,
            State::Exited,
            State::Closed(Cause::Finished),
        ];
        let kinds = [
            Kind::Start { tty: false },
            Kind::Stdin(1),
            Kind::Stdin(0),
            Kind::StdinFin,
            Kind::Resize,
            Kind::Signal(15),
            Kind::Started(true),
            Kind::Started(false),
            Kind::Output(Output::Stdout, 1),
            Kind::Output(Output::Stderr, 0),
            Kind::Exit(0),
            Kind::Empty,
            Kind::Unknown,
        ];
        let mut table = String::new();
        for state in states {
            for side in Side::BOTH {
                for kind in kinds {
                    let answer = match state.hear(side, kind) {
                        Ok(Step::Pass(next)) => format!("pass, {next:?}"),
                        Ok(Step::Ignore) => "ignore".to_owned(),
                        Err(violation) => format!("violation: {violation}"),
                    };
                    table.push_str(&format!("{state:?} + {side:?} {kind:?} -> {answer}\n"));
                }
            }
        }
        insta::assert_snapshot!(table);
    }
}
