//! The relay's rules, named after the cases that taught them.

mod deadlines;
mod endings;
mod half_close;
mod legacy;
mod peers;

use std::time::Duration;

use super::*;
use crate::joint::rig;
use crate::leg::Orientation;
use crate::limits::CLOSE_REASON_GRACE;

const DOWN: Side = Side::Downstream;
const UP: Side = Side::Upstream;

type Rig = rig::Rig<Relay>;

impl Rig {
    fn new(downstream: Leg, upstream: Leg, origin: Origin) -> Self {
        Self::with(StreamLimits::default(), downstream, upstream, origin)
    }

    fn with(limits: StreamLimits, downstream: Leg, upstream: Leg, origin: Origin) -> Self {
        let hop = HopName::new("here");
        Self::run(|now| Relay::new(downstream, upstream, limits, origin, hop, now))
    }

    /// A local socket and the RPC it is carried by.
    fn client(form: HalfClose) -> Self {
        let upstream = Leg::opener(Orientation::Forward, Some(form));
        Self::new(Leg::socket(), upstream, Origin::Client)
    }

    /// A client's RPC and a supervisor's.
    fn gateway(client: HalfClose, supervisor: HalfClose) -> Self {
        Self::limited_gateway(StreamLimits::default(), client, supervisor)
    }

    fn limited_gateway(limits: StreamLimits, client: HalfClose, supervisor: HalfClose) -> Self {
        let downstream = Leg::acceptor(Orientation::Forward, client);
        let upstream = Leg::acceptor(Orientation::Backward, supervisor);
        Self::with(limits, downstream, upstream, Origin::Gateway)
    }

    /// The RPC that a target's socket is carried by, and that socket.
    fn supervisor(form: HalfClose) -> Self {
        let downstream = Leg::opener(Orientation::Backward, Some(form));
        Self::new(downstream, Leg::socket(), Origin::Supervisor)
    }

    /// One arrival, in a step of its own.
    fn hears(&mut self, side: Side, arrival: Arrival) -> Take {
        let take = self.machine.recv(side, arrival, self.now);
        self.step();
        take
    }

    /// One ending that the neighbour on `side` is to blame for, in a step of its own.
    fn loses(&mut self, side: Side, rank: Rank, end: End) {
        self.machine.end(side, rank, end);
        self.step();
    }

    fn is_open(&self) -> bool {
        self.machine.outcome().is_none()
    }
}

fn end(origin: Origin, reason: Reason) -> End {
    End::new(origin, reason, "why")
}

/// The same end as the next hop reads it.
fn via_here(end: End) -> Box<End> {
    Box::new(end.via(&HopName::new("here")))
}

fn target_reset() -> End {
    end(Origin::Target, Reason::TargetReset)
}

fn lost(origin: Origin) -> End {
    end(origin, Reason::TransportLost)
}

/// The end in a status, and in a reset.
fn told(writes: &[Write]) -> Option<(Origin, Reason)> {
    rig::told(writes).map(|end| (end.origin, end.reason))
}
