//! Why a stream or a session is over whose neighbour was lost without a word.

use crate::cause::Reason;

/// How a neighbour was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The connection broke, or the stream was reset in a way that says nothing.
    Broken,
    /// A PING was not answered: the neighbour's host is gone, or the way to it.
    Unanswered,
}

/// What was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A supervisor's session, for its gateway.
    Supervisor,
    /// A gateway's session, for its supervisor.
    Gateway,
    /// A byte stream, on either side of it. If its session is gone too, that is told as the typed
    /// end which a bare loss waits for.
    Stream,
    /// A stream to the gateway that owns the session, for the gateway that asked it.
    Owner,
    /// A stream from the gateway that asked, for the owner.
    Requester,
}

impl Loss {
    /// The reason that is reported. `liveness` says whether the session, or the one that the stream
    /// belongs to, agreed on `session-liveness-v1`: then an unanswered PING means what missing
    /// heartbeats do, whichever is noticed first.
    pub const fn reason(self, of: Link, liveness: bool) -> Reason {
        match (self, of) {
            (Self::Broken | Self::Unanswered, Link::Owner) => Reason::OwnerLost,
            (Self::Broken | Self::Unanswered, Link::Requester) => Reason::PeerLost,
            (Self::Unanswered, _) if liveness => Reason::HeartbeatTimeout,
            (Self::Broken | Self::Unanswered, Link::Supervisor) => Reason::SupervisorLost,
            (Self::Broken | Self::Unanswered, Link::Gateway | Link::Stream) => {
                Reason::TransportLost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_gateways_it_is_the_gateway_that_is_lost_however() {
        for loss in [Loss::Broken, Loss::Unanswered] {
            for liveness in [false, true] {
                assert_eq!(loss.reason(Link::Owner, liveness), Reason::OwnerLost);
                assert_eq!(loss.reason(Link::Requester, liveness), Reason::PeerLost);
            }
        }
    }

    #[test]
    fn an_unanswered_ping_is_a_missing_heartbeat_wherever_those_were_agreed_on() {
        for (of, broken) in [
            (Link::Supervisor, Reason::SupervisorLost),
            (Link::Gateway, Reason::TransportLost),
            (Link::Stream, Reason::TransportLost),
        ] {
            assert_eq!(Loss::Broken.reason(of, true), broken);
            assert_eq!(Loss::Broken.reason(of, false), broken);
            assert_eq!(Loss::Unanswered.reason(of, false), broken);
            assert_eq!(Loss::Unanswered.reason(of, true), Reason::HeartbeatTimeout);
        }
    }
}
