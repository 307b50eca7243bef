//! The two sides of a joint.

/// One of the two sides of a stream on its hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Towards the client.
    Downstream,
    /// Towards the target.
    Upstream,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Downstream, Self::Upstream];

    /// The other side.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Downstream => Self::Upstream,
            Self::Upstream => Self::Downstream,
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Downstream => 0,
            Self::Upstream => 1,
        }
    }
}
