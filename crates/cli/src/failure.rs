//! What a command says when it could not do what it was asked to.

use std::fmt::Display;
use std::io;

use serde_json::{Value, json};
use tidegate_client::{End, code_name};

use crate::output::plain;
use crate::remedy;

/// Why a command ended otherwise than it should.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A hop on the path said no, or was lost.
    End {
        /// What was tried, to follow "cannot".
        what: String,
        /// Who ended it, and why.
        end: Box<End>,
    },
    /// Something on this machine.
    Local(Box<Local>),
    /// Whoever read our output has gone: there is nobody to tell.
    OutputClosed,
    /// Everything has been said already.
    Said,
    /// A signal asked for the end; the exit code tells which.
    Stopped(i32),
    /// Everything has been said, and this is the exit code.
    Ended(i32),
}

/// A failure that no gateway has seen.
#[derive(Debug)]
pub(crate) struct Local {
    pub(crate) trouble: Trouble,
    /// A whole sentence, without the full stop.
    pub(crate) sentence: String,
    /// What to do; a sentence too, or nothing.
    pub(crate) remedy: String,
}

/// The kinds of local failure, as `--output json` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A flag, a variable, a file of settings or of credentials cannot be used.
    Settings,
    /// An address cannot be listened on.
    Listen,
    /// The system refused something else.
    System,
    /// A part did not do what it promises.
    #[cfg_attr(
        not(all(unix, feature = "daemons")),
        expect(dead_code, reason = "only the demonstration looks")
    )]
    Promise,
}

impl Trouble {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Settings => ("SETTINGS_INVALID", "INVALID_ARGUMENT"),
            Self::Listen => ("LISTEN_FAILED", "UNAVAILABLE"),
            Self::System => ("SYSTEM_ERROR", "UNKNOWN"),
            Self::Promise => ("PROMISE_BROKEN", "INTERNAL"),
        }
    }
}

impl Failure {
    /// `what` could not be done, because of `end`. Reads "cannot `what`".
    pub(crate) fn end(what: impl Into<String>, end: End) -> Self {
        Self::End {
            what: what.into(),
            end: Box::new(end),
        }
    }

    /// A failure of this machine.
    pub(crate) fn local(
        trouble: Trouble,
        sentence: impl Display,
        remedy: impl Into<String>,
    ) -> Self {
        Self::Local(Box::new(Local {
            trouble,
            sentence: sentence.to_string(),
            remedy: remedy.into(),
        }))
    }

    /// Settings that cannot be used.
    pub(crate) fn settings(sentence: impl Display, remedy: impl Into<String>) -> Self {
        Self::local(Trouble::Settings, sentence, remedy)
    }

    /// The system refused to `what`.
    pub(crate) fn io(what: impl Display, error: io::Error) -> Self {
        Self::local(Trouble::System, format!("cannot {what}: {error}"), "")
    }

    /// What the process ends with.
    pub(crate) const fn exit_code(&self) -> i32 {
        match self {
            Self::OutputClosed => 0,
            Self::End { .. } | Self::Local(_) | Self::Said => 1,
            Self::Stopped(code) | Self::Ended(code) => *code,
        }
    }

    /// The sentence for a person: what failed, why, where, and what to do; unless there is nothing
    /// to say.
    pub(crate) fn sentence(&self) -> Option<String> {
        match self {
            Self::End { what, end } => {
                let hint = end.remedy.unwrap_or_else(|| remedy::of(end));
                let gap = if hint.is_empty() { "" } else { " " };
                Some(format!("cannot {what}: {}.{gap}{hint}", told(end)))
            }
            Self::Local(local) => {
                let gap = if local.remedy.is_empty() { "" } else { ". " };
                Some(format!("{}{gap}{}", plain(&local.sentence), local.remedy))
            }
            Self::OutputClosed | Self::Said | Self::Stopped(_) | Self::Ended(_) => None,
        }
    }

    /// The same for a program.
    pub(crate) fn json(&self) -> Option<Value> {
        let error = match self {
            Self::End { end, .. } => json!({
                "reason": end.reason.as_str(),
                "code": code_name(end.reason),
                "origin": end.origin.as_str(),
                "hops": end.hops.iter().map(|hop| hop.as_str()).collect::<Vec<_>>(),
                "message": self.sentence(),
            }),
            Self::Local(local) => {
                let (reason, code) = local.trouble.words();
                json!({
                    "reason": reason,
                    "code": code,
                    "origin": "client",
                    "hops": [],
                    "message": self.sentence(),
                })
            }
            Self::OutputClosed | Self::Said | Self::Stopped(_) | Self::Ended(_) => return None,
        };
        Some(json!({ "error": error }))
    }
}

/// An end as a person reads it: the message, then its name and where on the path it arose.
pub(crate) fn told(end: &End) -> String {
    let hops: Vec<_> = end.hops.iter().map(|hop| plain(hop.as_str())).collect();
    let via = if hops.is_empty() {
        String::new()
    } else {
        format!(", by way of {}", hops.join(" and "))
    };
    let place = format!("{} at the {}{via}", end.reason, end.origin);
    let message = plain(&end.message);
    if message.is_empty() {
        place
    } else {
        format!("{} ({place})", message.trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_client::{Origin, Reason};

    use super::*;

    #[test]
    fn a_failure_says_what_where_why_and_what_to_do() {
        let end = End::new(Origin::Gateway, Reason::SandboxNotFound, "nobody knows it");
        let failure = Failure::end("forward to sandbox nope", end);
        let sentence = failure.sentence().unwrap();
        assert!(
            sentence.starts_with(
                "cannot forward to sandbox nope: nobody knows it \
                 (SANDBOX_NOT_FOUND at the gateway). "
            ),
            "{sentence}"
        );
        assert!(sentence.contains("tidegate sandboxes"), "{sentence}");
        let json = failure.json().unwrap();
        assert_eq!(json["error"]["reason"], "SANDBOX_NOT_FOUND");
        assert_eq!(json["error"]["code"], "NOT_FOUND");
        assert_eq!(json["error"]["origin"], "gateway");
    }

    #[test]
    fn a_remedy_of_the_end_itself_comes_before_its_reasons() {
        let end = End::new(Origin::Client, Reason::TransportLost, "no").with_remedy("Say --ca.");
        let sentence = Failure::end("list", end).sentence().unwrap();
        assert!(sentence.ends_with(" Say --ca."), "{sentence}");
    }

    #[test]
    fn a_certificate_that_is_missing_is_not_mistaken_for_a_token() {
        let end = |origin| End::new(origin, Reason::CredentialInvalid, "no");
        let by_tls = Failure::end("list", end(Origin::Client))
            .sentence()
            .unwrap();
        let by_token = Failure::end("list", end(Origin::Gateway))
            .sentence()
            .unwrap();
        assert!(by_tls.contains("--cert and --key"), "{by_tls}");
        assert!(!by_tls.contains("--token-file"), "{by_tls}");
        assert!(by_token.contains("--token-file"), "{by_token}");
    }

    #[test]
    fn words_of_others_cannot_steer_a_terminal() {
        let end = End::new(Origin::Target, Reason::TargetRefused, "a\u{1b}[2Jb\nc");
        assert_eq!(told(&end), "a [2Jb c (TARGET_REFUSED at the target)");
    }
}
