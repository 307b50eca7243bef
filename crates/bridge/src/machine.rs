//! The machines that a tunnel can run.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tidegate_lifecycle::Capability;
use tidegate_lifecycle::cause::{Cause, End as StreamEnd, Reason};
use tidegate_lifecycle::exec::{self, Execution, Kind};
use tidegate_lifecycle::leg::{Arrival, Write};
use tidegate_lifecycle::limits::{CLEANUP, STATUS_GRACE};
use tidegate_lifecycle::relay::{Rank, Relay, Side};
use tidegate_lifecycle::state::{State, Take};
use tidegate_wire::exec::Item;

use crate::end::Opened;

/// What to do with something that was read.
#[derive(Debug)]
pub enum Taken<I> {
    /// Hand this on.
    Deliver(I),
    /// It was dropped; so many payload bytes of it are given back.
    Discard(usize),
    /// It says that the path is open: tell the other side so.
    Announce,
}

/// What decides in a tunnel. See [`Relay`] for how it is fed and drained.
pub trait Machine {
    /// What it decides about.
    type Item;

    /// An end is open. Says whether the other side is told now.
    fn opened(&mut self, side: Side, opened: &Opened) -> bool;
    /// Something to carry came from `side`.
    fn recv(&mut self, side: Side, item: Self::Item, now: Instant) -> Taken<Self::Item>;
    /// Something else came from `side`.
    fn hear(&mut self, side: Side, arrival: Arrival, now: Instant);
    /// The neighbour on `side` broke a rule that only the shell can see.
    fn violate(&mut self, side: Side, reason: Reason, message: String);
    /// The neighbour on `side` ended the stream, or was lost.
    fn end(&mut self, side: Side, rank: Rank, end: StreamEnd);
    /// This hop ends the stream.
    fn close(&mut self, end: StreamEnd);
    /// This hop ends the stream at `until`, if it has not ended well by then. What cannot be asked
    /// to end is ended now.
    fn close_by(&mut self, end: StreamEnd, until: Instant);
    /// Everything for `side` was taken.
    fn flushed(&mut self, side: Side);
    /// `side` took some bytes.
    fn progressed(&mut self, side: Side, now: Instant);
    /// Bytes wait for `side`.
    fn blocked(&mut self, side: Side, now: Instant);
    /// Ends the step.
    fn settle(&mut self, now: Instant);
    /// The next thing to write towards `side`.
    fn poll_write(&mut self, side: Side) -> Option<Write>;
    /// When to settle although nothing moves.
    fn poll_timeout(&self) -> Option<Instant>;
    /// How it ended.
    fn outcome(&self) -> Option<Result<(), &StreamEnd>>;
    /// Whose neighbour ended it.
    fn ended_by(&self) -> Option<Side>;
    /// The word for its state.
    fn word(&self) -> &'static str;
    /// How long the neighbours may take to notice the end.
    fn linger(&self) -> Duration;
}

/// What every machine has under the same name, whatever it decides about.
macro_rules! as_it_is {
    () => {
        fn violate(&mut self, side: Side, reason: Reason, message: String) {
            self.violate(side, reason, message);
        }

        fn end(&mut self, side: Side, rank: Rank, end: StreamEnd) {
            self.end(side, rank, end);
        }

        fn close(&mut self, end: StreamEnd) {
            self.close(end);
        }

        fn flushed(&mut self, side: Side) {
            self.flushed(side);
        }

        fn progressed(&mut self, side: Side, now: Instant) {
            self.progressed(side, now);
        }

        fn blocked(&mut self, side: Side, now: Instant) {
            self.blocked(side, now);
        }

        fn settle(&mut self, now: Instant) {
            self.settle(now);
        }

        fn poll_write(&mut self, side: Side) -> Option<Write> {
            self.poll_write(side)
        }

        fn poll_timeout(&self) -> Option<Instant> {
            self.poll_timeout()
        }

        fn outcome(&self) -> Option<Result<(), &StreamEnd>> {
            self.outcome()
        }

        fn ended_by(&self) -> Option<Side> {
            self.ended_by()
        }
    };
}

impl Machine for Relay {
    type Item = Bytes;

    as_it_is!();

    fn opened(&mut self, side: Side, opened: &Opened) -> bool {
        if side == Side::Upstream && opened.by_owner {
            self.leads_to_owner();
        }
        self.opened(side, opened.half_close);
        true
    }

    fn recv(&mut self, side: Side, item: Bytes, now: Instant) -> Taken<Bytes> {
        match self.recv(side, Arrival::Data(item.len()), now) {
            Take::Deliver => Taken::Deliver(item),
            Take::Discard => Taken::Discard(item.len()),
        }
    }

    fn hear(&mut self, side: Side, arrival: Arrival, now: Instant) {
        self.recv(side, arrival, now);
    }

    fn close_by(&mut self, end: StreamEnd, _until: Instant) {
        self.close(end);
    }

    fn word(&self) -> &'static str {
        let finished = |side| self.leg(side).has_heard_fin();
        match (finished(Side::Downstream), finished(Side::Upstream)) {
            _ if self.leg(Side::Upstream).state() == State::AwaitInit => "opening",
            (false, false) => "open",
            (true, _) => "upstream-finished",
            (false, true) => "downstream-finished",
        }
    }

    fn linger(&self) -> Duration {
        if self.cause() == Some(Cause::Finished) {
            CLEANUP
        } else {
            STATUS_GRACE
        }
    }
}

impl Machine for Execution {
    type Item = Item;

    as_it_is!();

    fn opened(&mut self, side: Side, opened: &Opened) -> bool {
        if side == Side::Upstream && opened.by_owner {
            self.leads_to_owner();
        }
        let results = opened.path.has(Capability::ExecResult);
        self.opened(side, opened.half_close, results)
    }

    fn recv(&mut self, side: Side, item: Item, now: Instant) -> Taken<Item> {
        let take = match &item {
            Item::Started(Err(end)) if side == Side::Upstream => self.refused((**end).clone(), now),
            _ => self.recv(side, item.kind(), now),
        };
        match take {
            exec::Take::Deliver => Taken::Deliver(match item {
                Item::Started(Err(end)) => Item::Started(Err(self.refusal(end))),
                other => other,
            }),
            exec::Take::Type(byte) => Taken::Deliver(Item::Stdin(Bytes::copy_from_slice(&[byte]))),
            exec::Take::Announce => Taken::Announce,
            exec::Take::Discard => Taken::Discard(item.weight()),
        }
    }

    fn hear(&mut self, side: Side, arrival: Arrival, now: Instant) {
        let kind = match arrival {
            Arrival::End => return self.recv_end(side, now),
            Arrival::Data(_) => Kind::Empty,
            Arrival::FinFrame => Kind::StdinFin,
            Arrival::Init | Arrival::Unknown => Kind::Unknown,
        };
        self.recv(side, kind, now);
    }

    fn close_by(&mut self, end: StreamEnd, until: Instant) {
        self.close_by(end, until);
    }

    fn word(&self) -> &'static str {
        self.state().as_str()
    }

    fn linger(&self) -> Duration {
        // A caller that keeps its request open after the exit is not waited for.
        STATUS_GRACE
    }
}
