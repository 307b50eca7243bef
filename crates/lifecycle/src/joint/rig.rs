//! A shell in its simplest form, for the tests of what a machine decides.

use std::time::{Duration, Instant};

use super::Side;
use crate::cause::{End, Reason};
use crate::leg::Write;

/// What a rig needs of a machine.
pub(crate) trait Machine {
    fn settle(&mut self, now: Instant);
    fn poll_write(&mut self, side: Side) -> Option<Write>;
    fn flushed(&mut self, side: Side);
    fn outcome(&self) -> Option<Result<(), &End>>;
}

/// Reports, settles, writes at once what it is told to write, and keeps it for the test to look at.
/// Its sides take everything at once, until they are told to stall.
pub(crate) struct Rig<M> {
    pub(crate) machine: M,
    pub(crate) now: Instant,
    stalled: [bool; 2],
    written: [Vec<Write>; 2],
}

impl<M: Machine> Rig<M> {
    /// A rig whose time begins now.
    pub(crate) fn run(machine: impl FnOnce(Instant) -> M) -> Self {
        let now = Instant::now();
        Self {
            machine: machine(now),
            now,
            stalled: [false; 2],
            written: [vec![], vec![]],
        }
    }

    /// Settles, and writes what there is to write, until nothing moves.
    pub(crate) fn step(&mut self) {
        for _ in 0..3 {
            self.machine.settle(self.now);
            for side in Side::BOTH {
                let writes = std::iter::from_fn(|| self.machine.poll_write(side));
                self.written[side.index()].extend(writes);
                if !self.stalled[side.index()] {
                    self.machine.flushed(side);
                }
            }
        }
    }

    pub(crate) fn passes(&mut self, time: Duration) {
        self.now += time;
        self.step();
    }

    pub(crate) fn stalls(&mut self, side: Side, stalled: bool) {
        self.stalled[side.index()] = stalled;
        self.step();
    }

    /// What was written towards `side` since this was asked last.
    pub(crate) fn said(&mut self, side: Side) -> Vec<Write> {
        std::mem::take(&mut self.written[side.index()])
    }

    /// How the stream ended, as its reason.
    pub(crate) fn reason(&self) -> Option<Result<(), Reason>> {
        Some(self.machine.outcome()?.map_err(|end| end.reason))
    }
}

/// The end in the last thing written, a status or a reset.
pub(crate) fn told(writes: &[Write]) -> Option<&End> {
    match writes.last()? {
        Write::Status(end) | Write::Reset(end) => Some(end),
        Write::FinFrame | Write::EndStream | Write::Ok | Write::Close | Write::Keepalive => None,
    }
}

/// A machine, by the methods that it has anyway.
macro_rules! machine {
    ($name:ty) => {
        impl Machine for $name {
            fn settle(&mut self, now: Instant) {
                self.settle(now);
            }

            fn poll_write(&mut self, side: Side) -> Option<Write> {
                self.poll_write(side)
            }

            fn flushed(&mut self, side: Side) {
                self.flushed(side);
            }

            fn outcome(&self) -> Option<Result<(), &End>> {
                self.outcome()
            }
        }
    };
}

machine!(crate::relay::Relay);
machine!(crate::exec::Execution);
