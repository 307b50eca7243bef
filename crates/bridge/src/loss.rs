//! The one place where a lost HTTP/2 stream becomes a cause, by who sits where.

use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::relay::Rank;
use tidegate_transport::{Lost, Reason as Http2Reason};

/// Where this process sits when it watches a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// A gateway that watches a client.
    GatewayToClient,
    /// A gateway that watches a supervisor.
    GatewayToSupervisor,
    /// A client that watches its gateway.
    ClientToGateway,
    /// A supervisor that watches its gateway.
    SupervisorToGateway,
}

impl Seat {
    /// Who is on the other side.
    pub const fn neighbour(self) -> Origin {
        match self {
            Self::GatewayToClient => Origin::Client,
            Self::GatewayToSupervisor => Origin::Supervisor,
            Self::ClientToGateway | Self::SupervisorToGateway => Origin::Gateway,
        }
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
    let message = format!("the stream to the {who} was lost without an end: {lost}");
    (
        Rank::Transport,
        End::new(who, Reason::TransportLost, message),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clients_cancel_has_a_meaning_of_its_own() {
        for reason in [
            Http2Reason::CANCEL,
            Http2Reason::NO_ERROR,
            Http2Reason::INTERNAL_ERROR,
        ] {
            for seat in [
                Seat::GatewayToClient,
                Seat::GatewayToSupervisor,
                Seat::ClientToGateway,
                Seat::SupervisorToGateway,
            ] {
                let (rank, end) = lost(seat, Lost::Reset(reason));
                let cancel = seat == Seat::GatewayToClient && reason == Http2Reason::CANCEL;
                assert_eq!(rank == Rank::Typed, cancel);
                assert_eq!(end.reason == Reason::ClientCancelled, cancel);
                assert_eq!(end.origin, seat.neighbour());
            }
        }
    }
}
