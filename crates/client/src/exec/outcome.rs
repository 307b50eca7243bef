//! How a command ended, as its caller learns it.

use std::fmt;

use tidegate_lifecycle::cause::End;
use tidegate_lifecycle::exec::{Exit, ExitReason};

/// How a command ended. The first four are facts about the command, with its whole output; the
/// others are facts about the way to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, with any code.
    Exited(Exit),
    /// By a signal.
    Signaled(Exit),
    /// Its own time was over, and it was made to end.
    TimedOut(Exit),
    /// Someone else ended it: an operator, a policy, the removal of the sandbox.
    CancelledRemotely(Exit),
    /// This program cancelled it.
    CancelledHere,
    /// It was never started; the reason says why.
    NotStarted(Box<End>),
    /// It ran, and the way to it was lost. If it was seen to exit before, [`End::exit_code`] has the
    /// code; output may be missing.
    Lost(Box<End>),
}

impl Outcome {
    pub(super) const fn of(exit: Exit) -> Self {
        match exit.reason {
            ExitReason::Exited => Self::Exited(exit),
            ExitReason::Signaled => Self::Signaled(exit),
            ExitReason::TimedOut => Self::TimedOut(exit),
            ExitReason::Cancelled => Self::CancelledRemotely(exit),
        }
    }

    /// Whether the command ended by itself with code 0.
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Exited(exit) if exit.code == 0)
    }

    /// The command's exit, if its caller was told one.
    pub const fn exit(&self) -> Option<&Exit> {
        match self {
            Self::Exited(exit)
            | Self::Signaled(exit)
            | Self::TimedOut(exit)
            | Self::CancelledRemotely(exit) => Some(exit),
            Self::CancelledHere | Self::NotStarted(_) | Self::Lost(_) => None,
        }
    }

    /// Why there is no exit, if somebody else than this program is the cause.
    pub fn end(&self) -> Option<&End> {
        match self {
            Self::NotStarted(end) | Self::Lost(end) => Some(end),
            Self::Exited(_)
            | Self::Signaled(_)
            | Self::TimedOut(_)
            | Self::CancelledRemotely(_)
            | Self::CancelledHere => None,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(exit) => write!(f, "exited with code {}", exit.code),
            Self::Signaled(exit) => match exit.signal {
                Some(signal) => write!(f, "ended by signal {signal}"),
                None => write!(f, "ended by a signal (code {})", exit.code),
            },
            Self::TimedOut(_) => f.write_str("ended because its time was over"),
            Self::CancelledRemotely(_) => f.write_str("ended by someone else"),
            Self::CancelledHere => f.write_str("cancelled"),
            Self::NotStarted(end) => write!(f, "not started: {end}"),
            Self::Lost(end) => write!(f, "lost: {end}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exit_says_what_it_was() {
        assert!(Outcome::of(Exit::exited(0)).is_success());
        assert!(!Outcome::of(Exit::exited(7)).is_success());
        let check = |exit, text: &str| assert_eq!(Outcome::of(exit).to_string(), text);
        check(Exit::exited(7), "exited with code 7");
        check(Exit::signaled(9), "ended by signal 9");
        let reason = ExitReason::TimedOut;
        let exit = Exit {
            reason,
            ..Exit::exited(Exit::TIMED_OUT)
        };
        check(exit, "ended because its time was over");
    }
}
