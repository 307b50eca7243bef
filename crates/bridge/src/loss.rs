//! The one place where a lost HTTP/2 stream becomes a cause, by who sits where.

use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::loss::{Link, Loss};
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::{Lost, Reason as Http2Reason};

/// Where this process sits when it watches a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// A gateway that watches a client.
    GatewayToClient,
    /// A gateway that watches a supervisor.
    GatewayToSupervisor {
        /// Whether its session agreed on heartbeats.
        liveness: bool,
    },
    /// A gateway that watches the owner of a session, which it has asked.
    GatewayToOwner,
    /// The owner of a session that watches the gateway which asks.
    OwnerToGateway,
    /// A client that watches its gateway.
    ClientToGateway,
    /// A supervisor that watches its gateway.
    SupervisorToGateway {
        /// Whether its session agreed on heartbeats.
        liveness: bool,
    },
}

impl Seat {
    /// Who is on the other side.
    pub const fn neighbour(self) -> Origin {
        match self {
            Self::GatewayToClient => Origin::Client,
            Self::GatewayToSupervisor { .. } => Origin::Supervisor,
            Self::GatewayToOwner | Self::OwnerToGateway => Origin::Peer,
            Self::ClientToGateway | Self::SupervisorToGateway { .. } => Origin::Gateway,
        }
    }

    /// Whether it opened the RPC: what it hears is a response.
    pub(crate) const fn asks(self) -> bool {
        match self {
            Self::ClientToGateway | Self::SupervisorToGateway { .. } | Self::GatewayToOwner => true,
            Self::GatewayToClient | Self::GatewayToSupervisor { .. } | Self::OwnerToGateway => {
                false
            }
        }
    }

    /// Whether `lost` only asks for silence: with NO_ERROR whoever was asked resets what it does not
    /// want to read any more, behind a complete answer (RFC 9113, 8.1).
    pub(crate) fn is_answered_before(self, lost: Lost) -> bool {
        self.asks() && lost == Lost::Reset(Http2Reason::NO_ERROR)
    }

    /// What it is a loss of, if the neighbour is lost.
    pub(crate) const fn link(self) -> Link {
        match self {
            Self::GatewayToOwner => Link::Owner,
            Self::OwnerToGateway => Link::Requester,
            Self::GatewayToClient
            | Self::ClientToGateway
            | Self::GatewayToSupervisor { .. }
            | Self::SupervisorToGateway { .. } => Link::Stream,
        }
    }

    /// Whether a reset with CANCEL means that the client does not want the stream any more.
    const fn hears_of_cancel(self) -> bool {
        match self {
            Self::GatewayToClient | Self::OwnerToGateway => true,
            Self::ClientToGateway
            | Self::GatewayToOwner
            | Self::GatewayToSupervisor { .. }
            | Self::SupervisorToGateway { .. } => false,
        }
    }

    /// Whether the stream belongs to a session that agreed on heartbeats.
    const fn liveness(self) -> bool {
        match self {
            Self::GatewayToClient
            | Self::ClientToGateway
            | Self::GatewayToOwner
            | Self::OwnerToGateway => false,
            Self::GatewayToSupervisor { liveness } | Self::SupervisorToGateway { liveness } => {
                liveness
            }
        }
    }
}

/// How the neighbour was lost, for the table of what that means.
pub const fn how_lost(lost: Lost) -> Loss {
    match lost {
        Lost::PingTimeout => Loss::Unanswered,
        Lost::Reset(_) | Lost::GoAway(_) | Lost::Broken(_) => Loss::Broken,
    }
}

/// Names a loss. RST_STREAM(CANCEL) of a client, or of the gateway that asks for one, means one
/// thing; everything else broke without a word.
pub fn lost(seat: Seat, lost: Lost) -> (Rank, End) {
    let who = seat.neighbour();
    if seat.hears_of_cancel() && lost == Lost::Reset(Http2Reason::CANCEL) {
        let end = End::new(
            Origin::Client,
            Reason::ClientCancelled,
            "the client cancelled the stream",
        );
        return (Rank::Typed, end);
    }
    let reason = how_lost(lost).reason(seat.link(), seat.liveness());
    let message = format!("the stream to the {who} was lost without an end: {lost}");
    (Rank::Transport, End::new(who, reason, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEATS: [Seat; 8] = [
        Seat::GatewayToClient,
        Seat::GatewayToOwner,
        Seat::OwnerToGateway,
        Seat::GatewayToSupervisor { liveness: true },
        Seat::GatewayToSupervisor { liveness: false },
        Seat::ClientToGateway,
        Seat::SupervisorToGateway { liveness: true },
        Seat::SupervisorToGateway { liveness: false },
    ];

    /// What a loss is called that says nothing.
    fn bare(seat: Seat) -> Reason {
        match seat {
            Seat::GatewayToOwner => Reason::OwnerLost,
            Seat::OwnerToGateway => Reason::PeerLost,
            Seat::GatewayToClient
            | Seat::ClientToGateway
            | Seat::GatewayToSupervisor { .. }
            | Seat::SupervisorToGateway { .. } => Reason::TransportLost,
        }
    }

    #[test]
    fn only_a_cancel_on_the_clients_behalf_has_a_meaning_of_its_own() {
        for reason in [
            Http2Reason::CANCEL,
            Http2Reason::NO_ERROR,
            Http2Reason::INTERNAL_ERROR,
        ] {
            for seat in SEATS {
                let (rank, end) = lost(seat, Lost::Reset(reason));
                let from_client = matches!(seat, Seat::GatewayToClient | Seat::OwnerToGateway);
                if from_client && reason == Http2Reason::CANCEL {
                    assert_eq!((rank, end.origin), (Rank::Typed, Origin::Client));
                    assert_eq!(end.reason, Reason::ClientCancelled);
                } else {
                    assert_eq!((rank, end.origin), (Rank::Transport, seat.neighbour()));
                    assert_eq!(end.reason, bare(seat));
                }
            }
        }
    }

    #[test]
    fn only_who_has_asked_may_be_answered_before_a_reset() {
        for seat in SEATS {
            assert_eq!(
                seat.is_answered_before(Lost::Reset(Http2Reason::NO_ERROR)),
                seat.asks()
            );
            for other in [
                Lost::Reset(Http2Reason::CANCEL),
                Lost::GoAway(Http2Reason::NO_ERROR),
            ] {
                assert!(!seat.is_answered_before(other), "{other}");
            }
        }
    }

    #[test]
    fn a_data_connection_that_answers_no_ping_is_a_missing_heartbeat_of_its_session() {
        for seat in SEATS {
            let (rank, end) = lost(seat, Lost::PingTimeout);
            let expected = if seat.liveness() {
                Reason::HeartbeatTimeout
            } else {
                bare(seat)
            };
            assert_eq!((rank, end.reason), (Rank::Transport, expected), "{seat:?}");
        }
    }
}
