//! What the end of a command means here: an exit code, a sentence, an object.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use tidegate_client::exec::{Collected, Exit, ExitReason, Outcome, Output, Started, Summary};
use tidegate_client::{End, Reason};

use super::{Args, OURS};
use crate::failure::Failure;
use crate::output::{Console, bytes, plain};

/// Tells how the command ended.
pub(super) struct Report<'a> {
    args: &'a Args,
    console: &'a Console,
}

impl<'a> Report<'a> {
    pub(super) const fn new(args: &'a Args, console: &'a Console) -> Self {
        Self { args, console }
    }

    /// The command does not run.
    pub(super) fn not_started(&self, end: End) -> Failure {
        let (program, sandbox) = (plain(&self.args.command[0]), &self.args.sandbox);
        Failure::end(format!("run {program} in sandbox {sandbox}"), end)
    }

    /// The command has ended, and everything it wrote was shown: the exit code.
    pub(super) fn ended(&self, outcome: Outcome) -> Result<i32, Failure> {
        let exit = self.exit(outcome)?;
        for output in Output::BOTH {
            self.tell_cut(output, exit.summary(output));
        }
        if let Some(sentence) = self.sentence(&exit) {
            self.console.note(sentence);
        }
        Ok(exit.code)
    }

    /// The command has ended, and what it wrote is here.
    pub(super) fn collected(
        &self,
        mut collected: Collected,
        started: &Started,
    ) -> Result<i32, Failure> {
        let outcome = std::mem::replace(&mut collected.outcome, Outcome::CancelledHere);
        let exit = self.exit(outcome)?;
        let code = exit.code;
        collected.outcome = Outcome::Exited(exit.clone());
        self.console.json(&object(&collected, &exit, started))?;
        Ok(code)
    }

    fn exit(&self, outcome: Outcome) -> Result<Exit, Failure> {
        match outcome {
            Outcome::Exited(exit)
            | Outcome::Signaled(exit)
            | Outcome::TimedOut(exit)
            | Outcome::CancelledRemotely(exit) => Ok(exit),
            Outcome::CancelledHere => Err(Failure::Stopped(130)),
            Outcome::NotStarted(end) => Err(self.not_started(*end)),
            Outcome::Lost(end) => Err(self.lost(*end)),
        }
    }

    fn lost(&self, end: End) -> Failure {
        let (program, sandbox) = (plain(&self.args.command[0]), &self.args.sandbox);
        let seen = match end.exit_code {
            Some(code) => format!(", which was seen to exit with code {code}"),
            None => String::new(),
        };
        Failure::end(
            format!("go on with {program} in sandbox {sandbox}{seen}"),
            end,
        )
    }

    fn tell_cut(&self, output: Output, summary: &Summary) {
        if summary.truncated {
            let name = output.as_str();
            let (sent, total) = (bytes(summary.sent), bytes(summary.total));
            self.console.note(format_args!(
                "warning: {name} is cut: {sent} of {total} were sent, see --{name}-limit"
            ));
        }
    }

    /// What a person has to know beside the code.
    fn sentence(&self, exit: &Exit) -> Option<String> {
        let left = match exit.leftover {
            0 => String::new(),
            count => format!("; {count} of its processes could not be ended"),
        };
        let program = plain(&self.args.command[0]);
        match exit.reason {
            ExitReason::TimedOut => {
                let time = self
                    .args
                    .timeout
                    .map_or_else(String::new, |it| format!(", {it},"));
                Some(format!(
                    "{program} was ended: its time{time} was over{left}"
                ))
            }
            ExitReason::Cancelled => Some(format!("{program} was ended by someone else{left}")),
            ExitReason::Exited | ExitReason::Signaled if exit.leftover > 0 => {
                Some(format!("{program} has ended{left}"))
            }
            ExitReason::Exited | ExitReason::Signaled => None,
        }
    }
}

/// The exit code when the reason is why there is none of the command's own.
pub(super) const fn code_of(reason: Reason) -> i32 {
    match reason {
        Reason::ExecNotFound => 127,
        Reason::ExecNotExecutable => 126,
        _ => OURS,
    }
}

fn object(collected: &Collected, exit: &Exit, started: &Started) -> Value {
    let (stdout, stdout_encoding) = text(&collected.stdout.data);
    let (stderr, stderr_encoding) = text(&collected.stderr.data);
    let cut = Output::BOTH.into_iter().filter_map(|output| {
        let summary = collected.summary(output);
        let counts = json!({ "total": summary.total, "sent": summary.sent });
        summary
            .truncated
            .then(|| (output.as_str().to_owned(), counts))
    });
    let cut: Map<_, _> = cut.collect();
    let held = Output::BOTH
        .into_iter()
        .filter(|it| exit.summary(*it).held_open);
    json!({
        "schemaVersion": 1,
        "stdout": stdout,
        "stdoutEncoding": stdout_encoding,
        "stderr": stderr,
        "stderrEncoding": stderr_encoding,
        "exitCode": exit.code,
        "signal": exit.signal,
        "reason": word(exit.reason),
        "timedOut": exit.reason == ExitReason::TimedOut,
        "cancelled": exit.reason == ExitReason::Cancelled,
        "truncated": if cut.is_empty() { Value::Null } else { cut.into() },
        "heldOpen": held.map(Output::as_str).collect::<Vec<_>>(),
        "killScope": exit.scope.as_str(),
        "leftover": exit.leftover,
        "durationMs": u64::try_from(exit.duration.as_millis()).unwrap_or(u64::MAX),
        "streamId": started.stream.as_ref().map(|id| id.as_str()),
        "sessionId": started.session.as_ref().map(|id| id.as_str()),
    })
}

/// Bytes as JSON can hold them.
fn text(data: &[u8]) -> (String, &'static str) {
    match std::str::from_utf8(data) {
        Ok(text) => (text.to_owned(), "utf-8"),
        Err(_) => (STANDARD.encode(data), "base64"),
    }
}

const fn word(reason: ExitReason) -> &'static str {
    match reason {
        ExitReason::Exited => "PROCESS_EXITED",
        ExitReason::Signaled => "SIGNALED",
        ExitReason::TimedOut => "OPERATION_TIMEOUT",
        ExitReason::Cancelled => "CANCELLED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_encoded() {
        assert_eq!(text(b" \n"), (" \n".to_owned(), "utf-8"));
        assert_eq!(text(&[0xff, 0]), ("/wA=".to_owned(), "base64"));
    }

    #[test]
    fn codes_of_ours_cannot_be_mistaken() {
        assert_eq!(code_of(Reason::ExecNotFound), 127);
        assert_eq!(code_of(Reason::ExecNotExecutable), 126);
        for reason in [
            Reason::ExecBadWorkdir,
            Reason::SupervisorLost,
            Reason::SandboxNotFound,
        ] {
            assert_eq!(code_of(reason), 125);
        }
    }
}
