//! The rules of an execution, named after the cases that taught them where there are any.

mod endings;
mod input;
mod peers;

use std::time::Duration;

use super::*;
use crate::capability::{Capabilities, Capability};
use crate::cause::{Cause, End, Origin, Reason};
use crate::id::HopName;
use crate::joint::{Rank, Side, rig};
use crate::leg::{Orientation, Write};
use crate::limits::{CLOSE_REASON_GRACE, StreamLimits};

const CALLER: Side = Side::Downstream;
const PROCESS: Side = Side::Upstream;
const OURS: Capabilities = Capabilities::EXEC;
const LEGACY: Capabilities = Capabilities::NONE;
const START: Kind = Kind::Start { tty: false };
const TTY: Kind = Kind::Start { tty: true };
const OUTPUT: Kind = Kind::Output(Output::Stdout, 5);

type Rig = rig::Rig<Execution>;

impl Rig {
    fn new(caller: Hop, process: Hop, origin: Origin) -> Self {
        Self::with(StreamLimits::default(), caller, process, origin)
    }

    fn with(limits: StreamLimits, caller: Hop, process: Hop, origin: Origin) -> Self {
        let hop = HopName::new("here");
        Self::run(|now| Execution::new(caller, process, limits, origin, hop, now))
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
        self.machine.opened(PROCESS, agreed.half_close(), results)
    }

    fn says(&mut self, side: Side, kind: Kind) -> Take {
        let take = self.machine.recv(side, kind, self.now);
        self.step();
        take
    }

    fn ends(&mut self, side: Side) {
        self.machine.recv_end(side, self.now);
        self.step();
    }

    fn loses(&mut self, side: Side) {
        let end = End::new(Origin::Peer, Reason::TransportLost, "lost");
        self.machine.end(side, Rank::Transport, end);
        self.step();
    }

    fn code(&self) -> Option<i32> {
        self.machine.outcome()?.err()?.exit_code
    }
}

/// The reason in the last thing written, a status or a reset.
fn told(writes: &[Write]) -> Option<Reason> {
    rig::told(writes).map(|end| end.reason)
}
