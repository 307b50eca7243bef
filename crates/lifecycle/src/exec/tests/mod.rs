//! The rules of an execution, named after the cases that taught them where there are any.
//!
//! A [`Rig`] is the shell in its simplest form: it reports, settles, writes at once what it is told
//! to write, and keeps it for the test to look at.

mod endings;
mod input;

use std::time::{Duration, Instant};

use super::*;
use crate::capability::{Capabilities, Capability};
use crate::cause::{Cause, End, Origin, Reason};
use crate::id::HopName;
use crate::joint::{Rank, Side};
use crate::leg::{Orientation, Write};
use crate::limits::{CLOSE_REASON_GRACE, StreamLimits};

const CALLER: Side = Side::Downstream;
const PROCESS: Side = Side::Upstream;
const OURS: Capabilities = Capabilities::EXEC;
const LEGACY: Capabilities = Capabilities::NONE;
const START: Kind = Kind::Start { tty: false };
const TTY: Kind = Kind::Start { tty: true };
const OUTPUT: Kind = Kind::Output(Output::Stdout, 5);

struct Rig {
    execution: Execution,
    now: Instant,
    stalled: [bool; 2],
    written: [Vec<Write>; 2],
}

impl Rig {
    fn new(caller: Hop, process: Hop, origin: Origin) -> Self {
        let (now, hop) = (Instant::now(), HopName::new("here"));
        let limits = StreamLimits::default();
        Self {
            execution: Execution::new(caller, process, limits, origin, hop, now),
            now,
            stalled: [false; 2],
            written: [vec![], vec![]],
        }
    }

    /// A caller's own hands, and the call of ours that carries it.
    fn client() -> Self {
        let process = Hop::opener(Orientation::Forward, None);
        Self::new(Hop::local(), process, Origin::Client)
    }

    /// A caller's call, and a supervisor's relay.
    fn gateway(caller: Capabilities) -> Self {
        let caller = Hop::acceptor(Orientation::Forward, caller);
        let mut rig = Self::new(caller, Hop::awaited(), Origin::Gateway);
        rig.opens(Capabilities::SESSION);
        rig
    }

    /// A gateway's relay, and the runner.
    fn supervisor() -> Self {
        let caller = Hop::opener(Orientation::Backward, Some(Capabilities::SESSION));
        Self::new(caller, Hop::local(), Origin::Supervisor)
    }

    fn running(mut self, start: Kind) -> Self {
        self.says(CALLER, start);
        self.says(PROCESS, Kind::Started(true));
        self
    }

    fn opens(&mut self, agreed: Capabilities) -> bool {
        let results = agreed.has(Capability::ExecResult);
        self.execution.opened(PROCESS, agreed.half_close(), results)
    }

    fn says(&mut self, side: Side, kind: Kind) -> Take {
        let take = self.execution.recv(side, kind, self.now);
        self.step();
        take
    }

    fn ends(&mut self, side: Side) {
        self.execution.recv_end(side, self.now);
        self.step();
    }

    fn loses(&mut self, side: Side) {
        let end = End::new(Origin::Peer, Reason::TransportLost, "lost");
        self.execution.end(side, Rank::Transport, end);
        self.step();
    }

    fn step(&mut self) {
        for _ in 0..3 {
            self.execution.settle(self.now);
            for side in Side::BOTH {
                let writes = std::iter::from_fn(|| self.execution.poll_write(side));
                self.written[side.index()].extend(writes);
                if !self.stalled[side.index()] {
                    self.execution.flushed(side);
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

    fn reason(&self) -> Option<Result<(), Reason>> {
        Some(self.execution.outcome()?.map_err(|end| end.reason))
    }

    fn code(&self) -> Option<i32> {
        self.execution.outcome()?.err()?.exit_code
    }
}

/// The reason in the last thing written, a status or a reset.
fn told(writes: &[Write]) -> Option<Reason> {
    match writes.last()? {
        Write::Status(end) | Write::Reset(end) => Some(end.reason),
        Write::FinFrame | Write::EndStream | Write::Ok | Write::Close | Write::Keepalive => None,
    }
}
