//! What a proxy has been told to do.

use std::{net::SocketAddr, time::Duration};

/// One of the two directions of a hop, or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the side that connected to the proxy to the one it connects to.
    Upstream,
    /// Back.
    Downstream,
    /// Both at once.
    Both,
}

/// How a connection is ended by force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// FIN to both sides, in the middle of whatever they were saying.
    Fin,
    /// RST to both sides.
    Reset,
}

/// Everything a proxy has been told.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) upstream: SocketAddr,
    pub(super) refuse: bool,
    pub(super) up: Flow,
    pub(super) down: Flow,
    /// How often all connections were ended; a connection that began before the last time goes.
    pub(super) endings: u64,
    pub(super) ending: Ending,
    /// How often all connections were stranded; one that began before the last time stands still.
    pub(super) strandings: u64,
    /// Connections that began before this many strandings go.
    pub(super) stranded_ended: u64,
}

impl Settings {
    pub(super) fn new(upstream: SocketAddr) -> Self {
        let (up, down) = (Flow::default(), Flow::default());
        Self {
            upstream,
            refuse: false,
            up,
            down,
            endings: 0,
            ending: Ending::Reset,
            strandings: 0,
            stranded_ended: 0,
        }
    }

    pub(super) fn end_all(&mut self, ending: Ending) {
        self.endings += 1;
        self.ending = ending;
    }

    pub(super) fn end_stranded(&mut self, ending: Ending) {
        self.stranded_ended = self.strandings;
        self.ending = ending;
    }

    /// How a connection that began `at` that time is treated.
    pub(super) fn flow(&self, way: Way, at: Birth) -> Flow {
        let mut flow = match way {
            Way::Up => self.up,
            Way::Down => self.down,
        };
        if self.strandings > at.strandings {
            flow.gate = Gate::Held;
        }
        flow
    }

    /// The present, for a connection that begins.
    pub(super) fn now(&self) -> Birth {
        Birth {
            endings: self.endings,
            strandings: self.strandings,
        }
    }

    /// Whether a connection that began `at` that time is to go.
    pub(super) fn ends(&self, at: Birth) -> bool {
        self.endings > at.endings || self.stranded_ended > at.strandings
    }

    pub(super) fn flows_mut(&mut self, direction: Direction) -> impl Iterator<Item = &mut Flow> {
        let (up, down) = match direction {
            Direction::Upstream => (Some(&mut self.up), None),
            Direction::Downstream => (None, Some(&mut self.down)),
            Direction::Both => (Some(&mut self.up), Some(&mut self.down)),
        };
        up.into_iter().chain(down)
    }
}

/// When a connection began, in what had happened until then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Birth {
    endings: u64,
    strandings: u64,
}

/// The way one pump moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Up,
    Down,
}

/// How one direction is treated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flow {
    pub(super) delay: Duration,
    pub(super) rate: Option<u64>,
    pub(super) gate: Gate,
    pub(super) cut: Option<Cut>,
}

/// Whether bytes get through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Gate {
    #[default]
    Open,
    /// Nothing is read and nothing is written.
    Held,
    /// What is read is thrown away.
    Discarding,
}

/// An end that comes after so many bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) bytes: u64,
    pub(super) ending: Ending,
}
