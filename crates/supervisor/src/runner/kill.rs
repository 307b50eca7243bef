//! Who ends a command, and what it is said to have ended with.

use std::time::Duration;

use rustix::process::Signal;
use tidegate_lifecycle::exec::{Exit, ExitReason};

use super::child::Ending;
use super::progress::Verdict;

/// Why a command is made to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// Its time is over.
    Timeout,
    /// Somebody other than the caller wants it: an operator, a policy, a supervisor that stops.
    Cancelled,
    /// The caller has cancelled, or nobody is there to be told the result.
    CallerGone,
}

/// The result of a command that ended so, and was made to if there is a reason.
pub(super) fn judge(
    ending: Ending,
    why: Option<Why>,
    duration: Duration,
    leftover: u32,
) -> Verdict {
    let signal = match ending {
        Ending::Code(_) => None,
        Ending::Signal(signal) => Some(signal),
    };
    let (code, reason) = match (why, ending) {
        (None, Ending::Code(code)) => (code, ExitReason::Exited),
        (None, Ending::Signal(signal)) => (128 + signal, ExitReason::Signaled),
        (Some(Why::Timeout), _) => (Exit::TIMED_OUT, ExitReason::TimedOut),
        (Some(Why::Cancelled | Why::CallerGone), _) => {
            // One that took TERM for a reason to exit has ended of it all the same.
            let signal = signal.unwrap_or(Signal::TERM.as_raw());
            (128 + signal, ExitReason::Cancelled)
        }
    };
    Verdict {
        code,
        reason,
        signal,
        duration,
        leftover,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(ending: Ending, why: Option<Why>, code: i32, reason: ExitReason, signal: Option<i32>) {
        let verdict = judge(ending, why, Duration::ZERO, 0);
        assert_eq!(
            (verdict.code, verdict.reason, verdict.signal),
            (code, reason, signal)
        );
    }

    #[test]
    fn every_end_has_its_code() {
        use Ending::{Code, Signal};
        check(Code(3), None, 3, ExitReason::Exited, None);
        check(Signal(11), None, 139, ExitReason::Signaled, Some(11));
        check(Code(0), Some(Why::Timeout), 124, ExitReason::TimedOut, None);
        check(
            Signal(9),
            Some(Why::Timeout),
            124,
            ExitReason::TimedOut,
            Some(9),
        );
        check(
            Code(0),
            Some(Why::Cancelled),
            143,
            ExitReason::Cancelled,
            None,
        );
        check(
            Signal(9),
            Some(Why::CallerGone),
            137,
            ExitReason::Cancelled,
            Some(9),
        );
    }
}
