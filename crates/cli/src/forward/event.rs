//! What is told of a forward, to people and to programs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Cause, End, Origin, Outcome, Reason, SandboxName, StreamId, Target};

use super::link::Concern;
use crate::failure::told;
use crate::output::{bytes, plain};

/// Something happened.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A local address is bound.
    Listening { local: SocketAddr, target: Target },
    /// The way of a local connection is open.
    Opened {
        id: Option<StreamId>,
        on: Connection,
    },
    /// A local connection has ended, whether it was open or not.
    Closed {
        id: Option<StreamId>,
        on: Connection,
        how: Ended,
    },
    /// The way is lost, or the sandbox: to programs `gone`, for nothing is tried again.
    Reconnecting { end: End },
    /// New connections get through again.
    Restored,
}

/// A local connection.
#[derive(Clone, Debug)]
pub(super) struct Connection {
    pub(super) local: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) target: Target,
}

/// How a local connection ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// Why, when it did not finish.
    pub(super) end: Option<Arc<End>>,
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    pub(super) duration: Duration,
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        Self {
            end: outcome.end,
            bytes_up: outcome.bytes_up,
            bytes_down: outcome.bytes_down,
            duration: outcome.duration,
        }
    }
}

impl Ended {
    fn cause(&self) -> Cause {
        self.end.as_ref().map_or(Cause::Finished, |end| end.cause())
    }
}

/// Where a line for people goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// What scripts wait for.
    Stdout,
    /// What only people read.
    Stderr,
}

impl Event {
    /// The object for a program.
    pub(super) fn json(&self) -> Value {
        match self {
            Self::Listening { local, target } => json!({
                "event": "listening",
                "local": local.to_string(),
                "target": target.to_string(),
            }),
            Self::Opened { id, on } => json!({
                "event": "opened",
                "id": id.as_ref().map(StreamId::as_str),
                "local": on.local.to_string(),
                "peer": on.peer.to_string(),
            }),
            Self::Closed { id, on, how } => json!({
                "event": "closed",
                "id": id.as_ref().map(StreamId::as_str),
                "peer": on.peer.to_string(),
                "bytesUp": how.bytes_up,
                "bytesDown": how.bytes_down,
                "durationMs": how.duration.as_millis() as u64,
                "reason": how.cause().reason_word(),
                "origin": origin(how.cause()),
            }),
            Self::Reconnecting { end } => json!({
                "event": match Concern::of(end.reason) {
                    Concern::Sandbox => "gone",
                    Concern::Way | Concern::Stream => "reconnecting",
                },
                "reason": end.reason.as_str(),
            }),
            Self::Restored => json!({ "event": "restored" }),
        }
    }

    /// The line for people, if they want to know: every connection only if `verbose`.
    pub(super) fn text(&self, sandbox: &SandboxName, verbose: bool) -> Option<(To, String)> {
        match self {
            Self::Listening { local, target } => {
                let line = format!("Forwarding {local} -> {sandbox} {target}");
                Some((To::Stdout, line))
            }
            Self::Opened { id, on } if verbose => {
                let id = id.as_ref().map_or("-", StreamId::as_str);
                let line = format!(
                    "Opened {} -> {} as stream {}",
                    on.peer,
                    on.target,
                    plain(id)
                );
                Some((To::Stderr, line))
            }
            Self::Opened { .. } => None,
            Self::Closed { on, how, .. } => closed(on, how, verbose).map(|line| (To::Stderr, line)),
            Self::Reconnecting { end } => Some((To::Stderr, lost(sandbox, end))),
            Self::Restored => {
                let line = format!("Sandbox {sandbox} can be reached: connections get through.");
                Some((To::Stderr, line))
            }
        }
    }
}

fn origin(cause: Cause) -> Option<&'static str> {
    match cause {
        Cause::Finished => None,
        Cause::Reset { origin, .. } => Some(origin.as_str()),
    }
}

/// What is said of a connection's end: of a clean one nothing, and in an outage the outage is
/// enough, unless somebody wants to hear of each.
fn closed(on: &Connection, how: &Ended, verbose: bool) -> Option<String> {
    let Connection { peer, target, .. } = on;
    match &how.end {
        None if verbose => Some(format!(
            "Closed {peer} -> {target}: {} up, {} down in {:.1?}",
            bytes(how.bytes_up),
            bytes(how.bytes_down),
            how.duration
        )),
        None => None,
        // Who pressed Ctrl-C knows.
        Some(end) if end.reason == Reason::ClientCancelled && !verbose => None,
        Some(end) if verbose || Concern::of(end.reason) == Concern::Stream => {
            Some(format!("Reset {peer} -> {target}: {}", told(end)))
        }
        Some(_) => None,
    }
}

fn lost(sandbox: &SandboxName, end: &End) -> String {
    let what = told(end);
    match (Concern::of(end.reason), end.origin) {
        (Concern::Sandbox, _) => {
            format!(
                "Sandbox {sandbox} is gone: {what}. New connections are reset until it is back."
            )
        }
        // Only the supervisor is missing: what connects waits for it.
        (Concern::Way | Concern::Stream, _) if end.reason == Reason::NoSession => {
            format!("Sandbox {sandbox} is away: {what}. New connections wait for it a while.")
        }
        (Concern::Way | Concern::Stream, Origin::Client) => {
            format!("The gateway is away: {what}. New connections get through once it is back.")
        }
        (Concern::Way | Concern::Stream, _) => format!(
            "Sandbox {sandbox} cannot be reached: {what}. New connections get through once it can."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> Connection {
        Connection {
            local: "127.0.0.1:8080".parse().unwrap(),
            peer: "127.0.0.1:50000".parse().unwrap(),
            target: Target::tcp("localhost", 80).unwrap(),
        }
    }

    fn ended(end: Option<End>) -> Event {
        Event::Closed {
            id: Some(StreamId::new("s1")),
            on: connection(),
            how: Ended {
                end: end.map(Arc::new),
                bytes_up: 3,
                bytes_down: 5,
                duration: Duration::from_millis(1500),
            },
        }
    }

    #[test]
    fn events_have_the_names_that_scripts_rely_on() {
        let check = |event: &Event, json: &str| {
            let expected: Value = serde_json::from_str(json).unwrap();
            assert_eq!(event.json(), expected);
        };
        let Connection { local, target, .. } = connection();
        check(
            &Event::Listening { local, target },
            r#"{"event":"listening","local":"127.0.0.1:8080","target":"localhost:80"}"#,
        );
        let id = Some(StreamId::new("s1"));
        check(
            &Event::Opened {
                id,
                on: connection(),
            },
            r#"{"event":"opened","id":"s1","local":"127.0.0.1:8080","peer":"127.0.0.1:50000"}"#,
        );
        check(
            &ended(None),
            r#"{"event":"closed","id":"s1","peer":"127.0.0.1:50000","bytesUp":3,"bytesDown":5,
                "durationMs":1500,"reason":"FINISHED","origin":null}"#,
        );
        let end = End::new(Origin::Target, Reason::TargetReset, "reset");
        check(
            &ended(Some(end.clone())),
            r#"{"event":"closed","id":"s1","peer":"127.0.0.1:50000","bytesUp":3,"bytesDown":5,
                "durationMs":1500,"reason":"TARGET_RESET","origin":"target"}"#,
        );
        check(
            &Event::Reconnecting { end },
            r#"{"event":"reconnecting","reason":"TARGET_RESET"}"#,
        );
        let end = End::new(Origin::Gateway, Reason::SandboxNotFound, "deleted");
        check(
            &Event::Reconnecting { end },
            r#"{"event":"gone","reason":"SANDBOX_NOT_FOUND"}"#,
        );
        check(&Event::Restored, r#"{"event":"restored"}"#);
    }

    #[test]
    fn people_hear_of_what_concerns_them() {
        let sandbox = SandboxName::parse("local").unwrap();
        let text = |event: &Event, verbose| event.text(&sandbox, verbose);
        let Connection { local, target, .. } = connection();
        assert_eq!(
            text(&Event::Listening { local, target }, false),
            Some((
                To::Stdout,
                "Forwarding 127.0.0.1:8080 -> local localhost:80".to_owned()
            ))
        );
        assert_eq!(text(&ended(None), false), None);
        assert!(
            text(&ended(None), true)
                .unwrap()
                .1
                .contains("3 B up, 5 B down")
        );
        let refused = End::new(Origin::Target, Reason::TargetRefused, "nothing listens");
        let (to, line) = text(&ended(Some(refused)), false).unwrap();
        assert_eq!(to, To::Stderr);
        assert_eq!(
            line,
            "Reset 127.0.0.1:50000 -> localhost:80: nothing listens (TARGET_REFUSED at the target)"
        );
        let outage = End::new(Origin::Gateway, Reason::TransportLost, "lost");
        assert_eq!(text(&ended(Some(outage)), false), None);
    }
}
