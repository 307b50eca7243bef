//! The gateway's end of a control stream.

use std::time::{Duration, Instant};

use super::{Beat, FromSupervisor, Heartbeat, Hello, PROTOCOL_VERSION, RelayClose};
use crate::cause::{End, Origin, Reason};
use crate::id::ChannelId;
use crate::{Capabilities, Capability};

/// What a session may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GatewayState {
    /// Nothing but a hello is legal yet.
    AwaitHello,
    /// Takes new relays.
    Live,
    /// Carries the relays it has, takes no new ones.
    DrainOnly,
    /// Over.
    Closed,
}

impl GatewayState {
    /// The word used in JSON and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AwaitHello => "connecting",
            Self::Live => "live",
            Self::DrainOnly => "draining",
            Self::Closed => "closed",
        }
    }
}

/// What a message, or the time, asks the shell to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GatewayAction {
    /// Register the session and answer with `Accepted`.
    Register(Hello),
    /// Tell the relay how its connection attempt went.
    Opened {
        /// Which relay.
        channel: ChannelId,
        /// `Err` with the cause when the target could not be connected.
        result: Result<(), End>,
    },
    /// End the relay: its supervisor did.
    Abort {
        /// Which relay.
        channel: ChannelId,
        /// Why.
        end: End,
    },
    /// Write a line: a legacy supervisor closed a relay, in its own words.
    Note {
        /// Which relay.
        channel: ChannelId,
        /// Its words.
        text: String,
    },
    /// The supervisor lets go of the session, because it is stopping or has another one: no new
    /// relays; end the session when the last relay has ended, or after this long.
    Drain {
        /// How long what is open may take.
        deadline: Duration,
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
pub struct GatewaySession {
    state: GatewayState,
    offered: Capabilities,
    agreed: Capabilities,
    heartbeat: Heartbeat,
    drain_until: Option<Instant>,
    leaving: Leaving,
}

/// What makes a session end that carries nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// Nothing does: it stays for the next relay.
    No,
    /// The supervisor has let go of it.
    Theirs,
    /// This gateway leaves, and the supervisor cannot be asked to move.
    Ours,
}

/// What this gateway does to a session when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Farewell {
    /// Asks the supervisor to open a session elsewhere, and waits until it has.
    Ask,
    /// Ends the session as soon as it carries nothing: its supervisor understands nothing else.
    WhenIdle,
    /// Nothing: the session is ending anyway.
    Nothing,
}

/// How a session ends that carries nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It does not.
    Stays,
    /// In peace: the supervisor has let go of it.
    Released,
    /// This gateway leaves.
    Left,
}

impl GatewaySession {
    /// Waits for a hello on a stream that has just opened.
    pub const fn new(offered: Capabilities, interval: Duration, now: Instant) -> Self {
        Self {
            state: GatewayState::AwaitHello,
            offered,
            agreed: Capabilities::NONE,
            heartbeat: Heartbeat::new(interval, false, now),
            drain_until: None,
            leaving: Leaving::No,
        }
    }

    /// What the session may do.
    pub const fn state(&self) -> GatewayState {
        self.state
    }

    /// What both ends understand, once the hello came.
    pub const fn agreed(&self) -> Capabilities {
        self.agreed
    }

    /// The supervisor said something.
    ///
    /// # Errors
    ///
    /// When it ends the session: a first message that is no hello, a second hello, another version.
    pub fn recv(&mut self, message: FromSupervisor, now: Instant) -> Result<GatewayAction, End> {
        self.heartbeat.heard(now);
        match self.state {
            GatewayState::AwaitHello => self.recv_first(message, now),
            GatewayState::Live | GatewayState::DrainOnly => self.recv_later(message, now),
            GatewayState::Closed => Ok(GatewayAction::Nothing),
        }
    }

    /// The time has come that [`Self::poll_timeout`] named.
    ///
    /// # Errors
    ///
    /// When the supervisor has been silent for too long, or its farewell has taken too long.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<GatewayAction, End> {
        if self.drain_until.is_some_and(|at| at <= now) {
            return Err(self.stopped("did not finish its streams within its own deadline"));
        }
        match (self.state, self.heartbeat.poll(now)) {
            (GatewayState::Live | GatewayState::DrainOnly, Beat::Send) => {
                Ok(GatewayAction::Heartbeat)
            }
            (GatewayState::Live | GatewayState::DrainOnly, Beat::Dead) => {
                self.state = GatewayState::Closed;
                Err(silence(
                    Origin::Supervisor,
                    "supervisor",
                    self.heartbeat.interval(),
                ))
            }
            (GatewayState::AwaitHello | GatewayState::Closed, _) | (_, Beat::Rest) => {
                Ok(GatewayAction::Nothing)
            }
        }
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Instant {
        let next = self.heartbeat.next();
        self.drain_until.map_or(next, |until| until.min(next))
    }

    /// A newer session of the sandbox has taken over, but this one may finish its relays.
    pub const fn retire(&mut self) {
        if matches!(self.state, GatewayState::Live) {
            self.state = GatewayState::DrainOnly;
        }
    }

    /// This gateway leaves. Asked again, it answers the same of a supervisor that has not moved yet.
    ///
    /// A supervisor that is asked keeps its session live until it has another: no instant is without
    /// one. [`GatewaySession::retire`] follows when it has.
    pub const fn leave(&mut self) -> Farewell {
        match (self.state, self.leaving) {
            (GatewayState::Live, Leaving::No) if self.agreed.has(Capability::SessionDrain) => {
                Farewell::Ask
            }
            (GatewayState::Live | GatewayState::DrainOnly, Leaving::No) => {
                self.leaving = Leaving::Ours;
                Farewell::WhenIdle
            }
            (GatewayState::Live | GatewayState::DrainOnly, Leaving::Theirs | Leaving::Ours)
            | (GatewayState::AwaitHello | GatewayState::Closed, _) => Farewell::Nothing,
        }
    }

    /// This gateway leaves, and the supervisor has had time to move: the session ends when it carries
    /// nothing.
    pub const fn dismiss(&mut self) {
        if matches!(self.leaving, Leaving::No) {
            self.leaving = Leaving::Ours;
        }
    }

    /// What becomes of the session when it carries no relay.
    pub const fn idle(&self) -> Idle {
        match (self.state, self.leaving) {
            (GatewayState::Live | GatewayState::DrainOnly, Leaving::Theirs) => Idle::Released,
            (GatewayState::Live | GatewayState::DrainOnly, Leaving::Ours) => Idle::Left,
            // A session that was replaced is let go by its supervisor, which may not have heard yet
            // that the other one stands.
            (GatewayState::Live | GatewayState::DrainOnly, Leaving::No)
            | (GatewayState::AwaitHello | GatewayState::Closed, _) => Idle::Stays,
        }
    }

    /// The supervisor ended its stream cleanly.
    pub fn recv_end(&mut self) -> End {
        match self.state {
            GatewayState::AwaitHello => {
                self.state = GatewayState::Closed;
                violation("the stream ended before a hello")
            }
            GatewayState::Live | GatewayState::DrainOnly | GatewayState::Closed => {
                self.stopped("ended its session")
            }
        }
    }

    fn recv_first(&mut self, message: FromSupervisor, now: Instant) -> Result<GatewayAction, End> {
        let FromSupervisor::Hello(hello) = message else {
            self.state = GatewayState::Closed;
            return Err(violation("the first message of a session must be a hello"));
        };
        if hello.protocol_version != PROTOCOL_VERSION {
            self.state = GatewayState::Closed;
            return Err(version_mismatch(hello.protocol_version));
        }
        self.agreed = self.offered.intersect(hello.capabilities);
        let expected = self.agreed.has(Capability::SessionLiveness);
        self.heartbeat = Heartbeat::new(self.heartbeat.interval(), expected, now);
        self.state = GatewayState::Live;
        Ok(GatewayAction::Register(hello))
    }

    fn recv_later(&mut self, message: FromSupervisor, now: Instant) -> Result<GatewayAction, End> {
        Ok(match message {
            FromSupervisor::Hello(_) => {
                self.state = GatewayState::Closed;
                return Err(violation("a session has one hello"));
            }
            FromSupervisor::Heartbeat => GatewayAction::Nothing,
            FromSupervisor::RelayOpenResult { channel, result } => {
                GatewayAction::Opened { channel, result }
            }
            FromSupervisor::RelayClose(RelayClose::Abort { channel, end }) => {
                GatewayAction::Abort { channel, end }
            }
            FromSupervisor::RelayClose(RelayClose::Advisory { channel, text }) => {
                GatewayAction::Note { channel, text }
            }
            FromSupervisor::Goodbye { deadline } => {
                self.retire();
                self.leaving = Leaving::Theirs;
                self.drain_until = now.checked_add(deadline);
                GatewayAction::Drain { deadline }
            }
            FromSupervisor::Unknown => GatewayAction::CountUnknown,
        })
    }

    fn stopped(&mut self, what: &str) -> End {
        self.state = GatewayState::Closed;
        let message = format!("the sandbox's supervisor was stopped: it {what}");
        End::new(Origin::Supervisor, Reason::SupervisorStopped, message)
    }
}

pub(super) fn silence(origin: Origin, who: &str, interval: Duration) -> End {
    let message = format!(
        "the {who} was silent for three heartbeat intervals of {interval:?} and is given up"
    );
    End::new(origin, Reason::HeartbeatTimeout, message)
}

fn violation(message: &str) -> End {
    End::new(Origin::Supervisor, Reason::ProtocolViolation, message)
}

fn version_mismatch(theirs: u32) -> End {
    let message = format!(
        "the supervisor speaks protocol version {theirs}, this gateway version {PROTOCOL_VERSION}: \
         upgrade the older of the two"
    );
    End::new(Origin::Gateway, Reason::VersionUnsupported, message)
        .retry_after(Duration::from_secs(30))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{InstanceId, SandboxName};

    const INTERVAL: Duration = Duration::from_secs(15);

    const STATES: [GatewayState; 4] = [
        GatewayState::AwaitHello,
        GatewayState::Live,
        GatewayState::DrainOnly,
        GatewayState::Closed,
    ];

    #[test]
    fn every_state_answers_every_message() {
        let mut table = String::new();
        for state in STATES {
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
            let mut session = session_in(state);
            let end = session.recv_end();
            table.push_str(&format!(
                "{state:?} + end of stream -> {:?}, {end}\n",
                session.state()
            ));
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn ss_21_another_major_version_is_refused_and_both_are_named() {
        let mut session = session_in(GatewayState::AwaitHello);
        let hello = Hello {
            protocol_version: 99,
            ..hello()
        };
        let end = session
            .recv(FromSupervisor::Hello(hello), Instant::now())
            .unwrap_err();
        assert_eq!(end.reason, Reason::VersionUnsupported);
        assert!(end.message.contains("version 99") && end.message.contains("version 1"));
        assert!(end.retry_after >= Some(Duration::from_secs(30)));
    }

    #[test]
    fn every_state_answers_a_gateway_that_leaves() {
        let mut table = String::new();
        for capabilities in [Capabilities::SESSION, Capabilities::NONE] {
            for state in STATES {
                for goodbye in [false, true] {
                    let mut session = session_in(state);
                    session.agreed = capabilities;
                    if goodbye && matches!(state, GatewayState::Live | GatewayState::DrainOnly) {
                        let deadline = Duration::from_secs(9);
                        let goodbye = FromSupervisor::Goodbye { deadline };
                        session.recv(goodbye, Instant::now()).unwrap();
                    }
                    let asked = [session.leave(), session.leave()];
                    let drains = capabilities.has(Capability::SessionDrain);
                    table.push_str(&format!(
                        "{state:?}, drains {drains}, goodbye {goodbye} -> {asked:?}, {:?}, idle: {:?}\n",
                        session.state(),
                        session.idle(),
                    ));
                }
            }
        }
        insta::assert_snapshot!(table);
    }

    #[test]
    fn a_session_that_was_replaced_waits_for_its_supervisor_to_let_go() {
        let mut session = session_in(GatewayState::Live);
        session.retire();
        assert_eq!(
            (session.state(), session.idle()),
            (GatewayState::DrainOnly, Idle::Stays)
        );
        let goodbye = FromSupervisor::Goodbye {
            deadline: Duration::from_secs(300),
        };
        session.recv(goodbye, Instant::now()).unwrap();
        assert_eq!(session.idle(), Idle::Released);
    }

    #[test]
    fn a_session_that_does_not_move_is_dismissed_and_one_that_was_let_go_is_not() {
        let mut session = session_in(GatewayState::Live);
        assert_eq!(session.leave(), Farewell::Ask);
        assert_eq!(session.idle(), Idle::Stays);
        session.dismiss();
        assert_eq!(session.idle(), Idle::Left);
        let goodbye = FromSupervisor::Goodbye {
            deadline: Duration::from_secs(300),
        };
        session.recv(goodbye, Instant::now()).unwrap();
        session.dismiss();
        assert_eq!(session.idle(), Idle::Released, "in peace");
    }

    #[test]
    fn a_farewell_that_takes_too_long_ends_the_session() {
        let mut session = session_in(GatewayState::Live);
        let now = Instant::now();
        let goodbye = FromSupervisor::Goodbye {
            deadline: Duration::from_secs(2),
        };
        session.recv(goodbye, now).unwrap();
        assert_eq!(session.poll_timeout(), now + Duration::from_secs(2));
        let end = session
            .handle_timeout(now + Duration::from_secs(2))
            .unwrap_err();
        assert_eq!(end.reason, Reason::SupervisorStopped);
    }

    #[test]
    fn a_farewell_without_an_end_that_a_clock_knows_is_no_fault() {
        let mut session = session_in(GatewayState::Live);
        let goodbye = FromSupervisor::Goodbye {
            deadline: Duration::MAX,
        };
        session.recv(goodbye, Instant::now()).unwrap();
        assert_eq!(session.state(), GatewayState::DrainOnly);
    }

    fn session_in(state: GatewayState) -> GatewaySession {
        let now = Instant::now();
        let mut session = GatewaySession::new(Capabilities::SESSION, INTERVAL, now);
        if state != GatewayState::AwaitHello {
            session.recv(FromSupervisor::Hello(hello()), now).unwrap();
        }
        session.state = state;
        session
    }

    fn hello() -> Hello {
        Hello::new(
            SandboxName::parse("local").unwrap(),
            InstanceId::new("i"),
            Capabilities::SESSION,
        )
    }

    fn messages() -> Vec<FromSupervisor> {
        let channel = ChannelId::new("c");
        let end = End::new(Origin::Target, Reason::TargetReset, "reset");
        vec![
            FromSupervisor::Hello(hello()),
            FromSupervisor::Heartbeat,
            FromSupervisor::RelayOpenResult {
                channel: channel.clone(),
                result: Ok(()),
            },
            FromSupervisor::RelayClose(RelayClose::Abort {
                channel: channel.clone(),
                end,
            }),
            FromSupervisor::RelayClose(RelayClose::Advisory {
                channel,
                text: "bye".into(),
            }),
            FromSupervisor::Goodbye {
                deadline: Duration::from_secs(10),
            },
            FromSupervisor::Unknown,
        ]
    }
}
