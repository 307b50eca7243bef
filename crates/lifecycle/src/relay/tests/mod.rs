//! The relay's rules, named after the cases that taught them.
//!
//! A [`Rig`] is the shell in its simplest form: it reports, settles, writes at once what it is told
//! to write, and keeps it for the test to look at.

mod deadlines;
mod endings;
mod half_close;
mod legacy;

use std::time::{Duration, Instant};

use super::*;
use crate::leg::Orientation;
use crate::limits::CLOSE_REASON_GRACE;

const DOWN: Side = Side::Downstream;
const UP: Side = Side::Upstream;

/// A side that takes everything at once, until it is told to stall.
struct Rig {
    relay: Relay,
    now: Instant,
    stalled: [bool; 2],
    written: [Vec<Write>; 2],
}

impl Rig {
    fn new(downstream: Leg, upstream: Leg, origin: Origin) -> Self {
        Self::with(StreamLimits::default(), downstream, upstream, origin)
    }

    fn with(limits: StreamLimits, downstream: Leg, upstream: Leg, origin: Origin) -> Self {
        let now = Instant::now();
        let hop = HopName::new("here");
        Self {
            relay: Relay::new(downstream, upstream, limits, origin, hop, now),
            now,
            stalled: [false; 2],
            written: [vec![], vec![]],
        }
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
        let take = self.relay.recv(side, arrival, self.now);
        self.step();
        take
    }

    /// One ending that the neighbour on `side` is to blame for, in a step of its own.
    fn loses(&mut self, side: Side, rank: Rank, end: End) {
        self.relay.end(side, rank, end);
        self.step();
    }

    /// Settles, and writes what there is to write, until nothing moves.
    fn step(&mut self) {
        for _ in 0..3 {
            self.relay.settle(self.now);
            for side in Side::BOTH {
                let writes = std::iter::from_fn(|| self.relay.poll_write(side));
                self.written[side.index()].extend(writes);
                if !self.stalled[side.index()] {
                    self.relay.flushed(side);
                }
            }
        }
    }

    fn passes(&mut self, time: Duration) {
        self.now += time;
        self.step();
    }

    fn stalls(&mut self, side: Side, stalled: bool) {
        self.stalled[side.index()] = stalled;
        self.step();
    }

    /// What was written towards `side` since this was asked last.
    fn said(&mut self, side: Side) -> Vec<Write> {
        std::mem::take(&mut self.written[side.index()])
    }

    /// How the stream ended, as its reason.
    fn reason(&self) -> Option<Result<(), Reason>> {
        Some(self.relay.outcome()?.map_err(|end| end.reason))
    }

    fn is_open(&self) -> bool {
        self.relay.outcome().is_none()
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
    match writes.last()? {
        Write::Status(end) | Write::Reset(end) => Some((end.origin, end.reason)),
        Write::FinFrame | Write::EndStream | Write::Ok | Write::Close | Write::Keepalive => None,
    }
}
