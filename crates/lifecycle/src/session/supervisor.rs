//! The supervisor's end of a control stream.

use std::time::{Duration, Instant};

use super::gateway::silence;
use super::{Accepted, Beat, FromGateway, Heartbeat, RelayClose, RelayOpen};
use crate::cause::{End, Origin, Reason};
use crate::id::ChannelId;
use crate::{Capabilities, Capability};

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SupervisorState {
    /// Our hello is on its way.
    AwaitAccepted,
    /// Takes requests for relays.
    Live,
    /// Another session has taken over: what is open goes on, new relays are refused.
    DrainOnly,
    /// We said goodbye: what is open may finish.
    Leaving,
    /// Over.
    Closed,
}

/// What a message, or the time, asks the shell to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SupervisorAction {
    /// The session stands.
    Begin(Accepted),
    /// Connect to a target, then open its relay.
    Dial(RelayOpen),
    /// Answer a request for a relay with a refusal.
    Refuse {
        /// Which relay.
        channel: ChannelId,
        /// Why.
        end: End,
    },
    /// End the relay, or stop dialling for it: the gateway did.
    Abort {
        /// Which relay.
        channel: ChannelId,
        /// Why.
        end: End,
    },
    /// Write a line: a legacy gateway closed a relay, in its own words.
    Note {
        /// Which relay.
        channel: ChannelId,
        /// Its words.
        text: String,
    },
    /// Open a session elsewhere, and then let go of this one.
    Move {
        /// When what is still open then will be ended.
        deadline: Duration,
        /// Where other gateways are, as far as this one knows.
        alternatives: Vec<String>,
    },
    /// Count a message that a newer peer understands.
    CountUnknown,
    /// Send a heartbeat.
    Heartbeat,
    /// Nothing.
    Nothing,
}

/// The machine. The shell owns the stream, the relays and the clock.
#[derive(Debug)]
pub struct SupervisorSession {
    state: SupervisorState,
    offered: Capabilities,
    agreed: Capabilities,
    heartbeat: Heartbeat,
}

impl SupervisorSession {
    /// Waits for the answer to a hello that offers `offered`. `fallback` is the heartbeat interval
    /// where the gateway names none.
    pub const fn new(offered: Capabilities, fallback: Duration, now: Instant) -> Self {
        Self {
            state: SupervisorState::AwaitAccepted,
            offered,
            agreed: Capabilities::NONE,
            heartbeat: Heartbeat::new(fallback, false, now),
        }
    }

    /// What the session may do.
    pub const fn state(&self) -> SupervisorState {
        self.state
    }

    /// What both ends understand, once the session stands.
    pub const fn agreed(&self) -> Capabilities {
        self.agreed
    }

    /// The gateway said something.
    ///
    /// # Errors
    ///
    /// When it ends the session: something else before the answer to the hello, a second answer, a
    /// rejection.
    pub fn recv(&mut self, message: FromGateway, now: Instant) -> Result<SupervisorAction, End> {
        self.heartbeat.heard(now);
        match self.state {
            SupervisorState::AwaitAccepted => self.recv_first(message, now),
            SupervisorState::Live | SupervisorState::DrainOnly | SupervisorState::Leaving => {
                self.recv_later(message)
            }
            SupervisorState::Closed => Ok(SupervisorAction::Nothing),
        }
    }

    /// The time has come that [`Self::poll_timeout`] named.
    ///
    /// # Errors
    ///
    /// When the gateway has been silent for too long.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<SupervisorAction, End> {
        match (self.state, self.heartbeat.poll(now)) {
            (
                SupervisorState::Live | SupervisorState::DrainOnly | SupervisorState::Leaving,
                Beat::Send,
            ) => Ok(SupervisorAction::Heartbeat),
            (
                SupervisorState::Live | SupervisorState::DrainOnly | SupervisorState::Leaving,
                Beat::Dead,
            ) => {
                self.state = SupervisorState::Closed;
                Err(silence(
                    Origin::Gateway,
                    "gateway",
                    self.heartbeat.interval(),
                ))
            }
            (SupervisorState::AwaitAccepted | SupervisorState::Closed, _) | (_, Beat::Rest) => {
                Ok(SupervisorAction::Nothing)
            }
        }
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Instant {
        self.heartbeat.next()
    }

    /// We are stopping: requests for relays are refused from here on. Says whether the gateway
    /// understands a goodbye.
    pub const fn leave(&mut self) -> bool {
        match self.state {
            SupervisorState::Live | SupervisorState::DrainOnly => {
                self.state = SupervisorState::Leaving;
                self.agreed.has(Capability::SessionDrain)
            }
            SupervisorState::AwaitAccepted | SupervisorState::Leaving | SupervisorState::Closed => {
                false
            }
        }
    }

    /// Another session has taken over: requests for relays are refused from here on, whatever the
    /// gateway believes. Says whether it understands a goodbye, which is due then.
    pub const fn replaced(&mut self) -> bool {
        match self.state {
            SupervisorState::Live => {
                self.state = SupervisorState::DrainOnly;
                self.agreed.has(Capability::SessionDrain)
            }
            SupervisorState::AwaitAccepted
            | SupervisorState::DrainOnly
            | SupervisorState::Leaving
            | SupervisorState::Closed => false,
        }
    }

    fn recv_first(&mut self, message: FromGateway, now: Instant) -> Result<SupervisorAction, End> {
        match message {
            FromGateway::Accepted(accepted) => {
                self.agreed = self.offered.intersect(accepted.capabilities);
                let expected = self.agreed.has(Capability::SessionLiveness);
                self.heartbeat = Heartbeat::new(accepted.heartbeat_interval, expected, now);
                self.state = SupervisorState::Live;
                Ok(SupervisorAction::Begin(accepted))
            }
            FromGateway::Rejected { reason } => {
                self.state = SupervisorState::Closed;
                let message = format!("the gateway rejected the session: {reason}");
                Err(End::new(Origin::Gateway, Reason::NotPermitted, message))
            }
            FromGateway::Heartbeat
            | FromGateway::RelayOpen(_)
            | FromGateway::RelayClose(_)
            | FromGateway::SessionDrain { .. }
            | FromGateway::Unknown => {
                self.state = SupervisorState::Closed;
                Err(violation(
                    "the gateway's first message must accept or reject the session",
                ))
            }
        }
    }

    fn recv_later(&mut self, message: FromGateway) -> Result<SupervisorAction, End> {
        Ok(match message {
            FromGateway::Accepted(_) | FromGateway::Rejected { .. } => {
                self.state = SupervisorState::Closed;
                return Err(violation("the gateway answered the same hello twice"));
            }
            FromGateway::Heartbeat => SupervisorAction::Nothing,
            FromGateway::RelayOpen(open) if self.state == SupervisorState::Live => {
                SupervisorAction::Dial(open)
            }
            FromGateway::RelayOpen(open) => {
                let message = if self.state == SupervisorState::DrainOnly {
                    "the supervisor has another session that takes its new streams"
                } else {
                    "the supervisor is stopping and takes no new streams"
                };
                let end = End::new(Origin::Supervisor, Reason::StaleSession, message);
                SupervisorAction::Refuse {
                    channel: open.channel,
                    end,
                }
            }
            FromGateway::RelayClose(RelayClose::Abort { channel, end }) => {
                SupervisorAction::Abort { channel, end }
            }
            FromGateway::RelayClose(RelayClose::Advisory { channel, text }) => {
                SupervisorAction::Note { channel, text }
            }
            FromGateway::SessionDrain {
                deadline,
                alternatives,
            } if self.state == SupervisorState::Live => SupervisorAction::Move {
                deadline,
                alternatives,
            },
            // It has moved, or is about to end anyway.
            FromGateway::SessionDrain { .. } => SupervisorAction::Nothing,
            FromGateway::Unknown => SupervisorAction::CountUnknown,
        })
    }
}

fn violation(message: &str) -> End {
    End::new(Origin::Gateway, Reason::ProtocolViolation, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;
    use crate::id::{Generation, SessionId};

    const INTERVAL: Duration = Duration::from_secs(15);

    #[test]
    fn every_state_answers_every_message() {
        let mut table = String::new();
        for state in [
            SupervisorState::AwaitAccepted,
            SupervisorState::Live,
            SupervisorState::DrainOnly,
            SupervisorState::Leaving,
            SupervisorState::Closed,
        ] {
            for message in messages() {
                let name = format!("{message:?}");
                let name = name.split([' ', '(', '{']).next().unwrap().to_owned();
                let mut session = session_in(state);
                let outcome = match session.recv(message, Instant::now()) {
                    Ok(action) => format!("{action:?}"),
                    Err(end) => format!("ends: {end}"),
                };
                let next = session.state();
                table.push_str(&format!("{state:?} + {name} -> {next:?}, {outcome}\n"));
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn a_session_that_was_replaced_takes_nothing_new_whatever_its_gateway_believes() {
        let mut session = session_in(SupervisorState::Live);
        assert!(session.replaced(), "the gateway is told");
        assert!(!session.replaced(), "once");
        let open = FromGateway::RelayOpen(RelayOpen {
            channel: ChannelId::new("c"),
            target: Target::Ssh,
            dial_timeout: None,
            lane: 0,
        });
        match session.recv(open, Instant::now()) {
            Ok(SupervisorAction::Refuse { end, .. }) => {
                assert_eq!(end.reason, Reason::StaleSession);
            }
            other => panic!("{other:?}"),
        }
        assert!(session.leave(), "a stop is said all the same");
    }

    #[test]
    fn ss_04_the_interval_in_the_answer_rules_for_both_ends() {
        let now = Instant::now();
        let mut session = SupervisorSession::new(Capabilities::SESSION, INTERVAL, now);
        let slow = Accepted {
            heartbeat_interval: INTERVAL * 2,
            ..accepted()
        };
        session.recv(FromGateway::Accepted(slow), now).unwrap();
        assert_eq!(
            session.handle_timeout(now + INTERVAL),
            Ok(SupervisorAction::Nothing)
        );
        assert_eq!(
            session.handle_timeout(now + INTERVAL * 2),
            Ok(SupervisorAction::Heartbeat)
        );
        assert!(session.handle_timeout(now + INTERVAL * 6).is_err());
    }

    fn session_in(state: SupervisorState) -> SupervisorSession {
        let mut session = SupervisorSession::new(Capabilities::SESSION, INTERVAL, Instant::now());
        session.agreed = Capabilities::SESSION;
        session.state = state;
        session
    }

    fn accepted() -> Accepted {
        Accepted {
            session: SessionId::new("s"),
            generation: Generation::new(1),
            heartbeat_interval: INTERVAL,
            capabilities: Capabilities::SESSION,
            gateway: "gw0".into(),
            gateways: Vec::new(),
            public_url: None,
        }
    }

    fn messages() -> Vec<FromGateway> {
        let channel = ChannelId::new("c");
        let end = End::new(Origin::Client, Reason::ClientCancelled, "cancelled");
        vec![
            FromGateway::Accepted(accepted()),
            FromGateway::Rejected {
                reason: "no".into(),
            },
            FromGateway::Heartbeat,
            FromGateway::RelayOpen(RelayOpen {
                channel: channel.clone(),
                target: Target::Ssh,
                dial_timeout: None,
                lane: 0,
            }),
            FromGateway::RelayClose(RelayClose::Abort {
                channel: channel.clone(),
                end,
            }),
            FromGateway::RelayClose(RelayClose::Advisory {
                channel,
                text: "bye".into(),
            }),
            FromGateway::SessionDrain {
                deadline: Duration::from_secs(300),
                alternatives: vec!["https://b".into()],
            },
            FromGateway::Unknown,
        ]
    }
}
