//! How an execution ended.

use std::time::Duration;

/// One of the two streams that a command writes. A terminal merges both into the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Output {
    /// File descriptor 1, or the terminal.
    Stdout,
    /// File descriptor 2.
    Stderr,
}

impl Output {
    /// Both of them.
    pub const BOTH: [Self; 2] = [Self::Stdout, Self::Stderr];

    /// The word for it in JSON and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Why a command ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// By itself, with a code.
    #[default]
    Exited,
    /// By a signal that nobody here has sent for its end.
    Signaled,
    /// Its own time was over.
    TimedOut,
    /// Someone other than the caller ended it: an operator, a policy, the removal of the sandbox.
    Cancelled,
}

/// How far the end of a command reaches: which of its descendants are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KillScope {
    /// Unknown, or the command alone.
    #[default]
    None,
    /// A cgroup of its own: every descendant, whatever it did.
    Cgroup,
    /// A subreaper of its own: every descendant that is not faster than the search for it.
    Reaper,
}

impl KillScope {
    /// The word for it in JSON and in messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Cgroup => "cgroup",
            Self::Reaper => "reaper",
        }
    }
}

/// What became of one output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Bytes that were written to it, until it was closed to the caller.
    pub total: u64,
    /// Bytes that were sent on.
    pub sent: u64,
    /// The budget cut it; `total - sent` bytes are missing.
    pub truncated: bool,
    /// Another process still held it when it was closed to the caller.
    pub held_open: bool,
}

/// The last event of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// The command's code; 128 and the signal's number for a signal, 124 when its time was over.
    pub code: i32,
    /// Why it ended.
    pub reason: ExitReason,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// What became of stdout, or of the terminal's output.
    pub stdout: Summary,
    /// What became of stderr.
    pub stderr: Summary,
    /// From the command's start to its end.
    pub duration: Duration,
    /// How far the end of its descendants would reach.
    pub scope: KillScope,
    /// Descendants that should have ended and could not be made to.
    pub leftover: u32,
}

impl Exit {
    /// The code of a command whose time was over.
    pub const TIMED_OUT: i32 = 124;

    /// The exit of a command that ended by itself.
    pub fn exited(code: i32) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    /// The exit of a command that a signal ended.
    pub fn signaled(signal: i32) -> Self {
        Self {
            code: 128 + signal,
            reason: ExitReason::Signaled,
            signal: Some(signal),
            ..Self::default()
        }
    }

    /// What became of one output.
    pub const fn summary(&self, output: Output) -> &Summary {
        match output {
            Output::Stdout => &self.stdout,
            Output::Stderr => &self.stderr,
        }
    }
}
