//! How a stream ends before it is finished: which ending wins, who is told, what is worth a wait.

use std::time::Instant;

use super::Side;
use crate::cause::End;

/// Which ending wins when several are observed in one step: the first in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// This side's own decision: its user cancelled, an operator closed it, the process stops.
    Own,
    /// The neighbour said why: a status, a typed `RelayClose`, a reset that has one meaning only.
    Typed,
    /// The neighbour broke the protocol.
    Violation,
    /// Time ran out.
    Deadline,
    /// Something broke without a word.
    Transport,
}

/// Who ended the stream, as far as telling the two legs goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Teller {
    /// This hop: both legs are told.
    Here,
    /// The neighbour on that side, which is gone: only the other leg can be told.
    Neighbour(Side),
    /// The neighbour on that side, which left its own direction unfinished but may listen: both legs
    /// are told.
    Quitter(Side),
    /// The neighbour on that side, by breaking the protocol: both are told, each in its own words.
    Violator(Side),
}

#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) rank: Rank,
    pub(crate) teller: Teller,
    pub(crate) end: End,
}

impl Ending {
    /// The side that was lost without a word, if that is what happened.
    pub(crate) fn bare_loss(&self) -> Option<Side> {
        match self.teller {
            Teller::Neighbour(side) | Teller::Quitter(side) => {
                (self.rank == Rank::Transport).then_some(side)
            }
            Teller::Here | Teller::Violator(_) => None,
        }
    }
}

/// An ending that does not count yet, and what it waits for.
#[derive(Debug)]
pub(crate) enum Patience {
    /// A bare loss waits for a word on the control stream that explains it, until that moment.
    Word(Box<Ending>, Instant),
    /// The target failed what the client still sends; the client gets what was on its way first.
    Delivery,
}

impl Patience {
    /// Whether the wait goes on although there is `news`. Everything weightier than a loss ends the
    /// wait for a word, as if both had been observed in the same step.
    pub(crate) fn outlasts(&self, news: &Ending) -> bool {
        match self {
            Self::Word(loss, _) => loss.rank <= news.rank,
            Self::Delivery => news.teller == Teller::Neighbour(Side::Upstream),
        }
    }
}
