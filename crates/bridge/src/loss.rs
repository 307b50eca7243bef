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
            Self::ClientToGateway | Self::SupervisorToGateway { .. } => Origin::Gateway,
        }
    }

    /// Whether `lost` only asks for silence: with NO_ERROR whoever was asked resets what it does not
    /// want to read any more, behind a complete answer (RFC 9113, 8.1).
    pub(crate) fn is_answered_before(self, lost: Lost) -> bool {
        let asks = match self {
            Self::ClientToGateway | Self::SupervisorToGateway { .. } => true,
            Self::GatewayToClient | Self::GatewayToSupervisor { .. } => false,
        };
        asks && lost == Lost::Reset(Http2Reason::NO_ERROR)
    }

    /// Whether the stream belongs to a session that agreed on heartbeats.
    const fn liveness(self) -> bool {
        match self {
            Self::GatewayToClient | Self::ClientToGateway => false,
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

/// Names a loss. RST_STREAM(CANCEL) of a client means one thing; everything else broke without a
/// word.
pub fn lost(seat: Seat, lost: Lost) -> (Rank, End) {
    let who = seat.neighbour();
    if seat == Seat::GatewayToClient && lost == Lost::Reset(Http2Reason::CANCEL) {
        let end = End::new(
            who,
            Reason::ClientCancelled,
            "the client cancelled the stream",
        );
        return (Rank::Typed, end);
    }
    let reason = how_lost(lost).reason(Link::Stream, seat.liveness());
    let message = format!("the stream to the {who} was lost without an end: {lost}");
    (Rank::Transport, End::new(who, reason, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEATS: [Seat; 6] = [
        Seat::GatewayToClient,
        Seat::GatewayToSupervisor { liveness: true },
        Seat::GatewayToSupervisor { liveness: false },
        Seat::ClientToGateway,
        Seat::SupervisorToGateway { liveness: true },
        Seat::SupervisorToGateway { liveness: false },
    ];

    #[test]
    fn only_a_clients_cancel_has_a_meaning_of_its_own() {
        for reason in [
            Http2Reason::CANCEL,
            Http2Reason::NO_ERROR,
            Http2Reason::INTERNAL_ERROR,
        ] {
            for seat in SEATS {
                let (rank, end) = lost(seat, Lost::Reset(reason));
                let cancel = seat == Seat::GatewayToClient && reason == Http2Reason::CANCEL;
                assert_eq!(rank == Rank::Typed, cancel);
                assert_eq!(end.reason == Reason::ClientCancelled, cancel);
                assert_eq!(end.reason == Reason::TransportLost, !cancel);
                assert_eq!(end.origin, seat.neighbour());
            }
        }
    }

    #[test]
    fn only_who_has_asked_may_be_answered_before_a_reset() {
        for seat in SEATS {
            let asks = matches!(seat.neighbour(), Origin::Gateway);
            assert_eq!(
                seat.is_answered_before(Lost::Reset(Http2Reason::NO_ERROR)),
                asks
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
                Reason::TransportLost
            };
            assert_eq!((rank, end.reason), (Rank::Transport, expected), "{seat:?}");
        }
    }
}
