//! What two neighbours both understand, agreed once per hop and from then on held in a type.

use std::fmt;

/// One thing a peer may promise to understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Capability {
    /// FIN frames in the response direction.
    StreamHalfClose,
    /// FIN frames in both directions; a missing FIN is an abort.
    StreamExplicitFin,
    /// A typed `RelayClose` is acted on.
    RelayAbort,
    /// Never sends a data frame above 64 KiB.
    FrameLimit,
    /// Sends heartbeats, expects them, may be timed out.
    SessionLiveness,
    /// Understands `goodbye` and being asked to drain.
    SessionDrain,
    /// The supervisor runs commands on relays of their own.
    ExecRelay,
    /// Says why a command ended and what became of its output; takes signals and budgets.
    ExecResult,
    /// Tells why a command did not start, and ends its descendants with it.
    ExecTree,
}

impl Capability {
    /// Every capability this version knows.
    pub const ALL: [Self; 9] = [
        Self::StreamHalfClose,
        Self::StreamExplicitFin,
        Self::RelayAbort,
        Self::FrameLimit,
        Self::SessionLiveness,
        Self::SessionDrain,
        Self::ExecRelay,
        Self::ExecResult,
        Self::ExecTree,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StreamHalfClose => "stream-half-close-v1",
            Self::StreamExplicitFin => "stream-explicit-fin-v1",
            Self::RelayAbort => "relay-abort-v1",
            Self::FrameLimit => "frame-limit-v1",
            Self::SessionLiveness => "session-liveness-v1",
            Self::SessionDrain => "session-drain-v1",
            Self::ExecRelay => "exec-relay-v1",
            Self::ExecResult => "exec-result-v1",
            Self::ExecTree => "exec-tree-v1",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of capabilities: offered by one peer, or agreed between two.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(u16);

impl Capabilities {
    /// How many different sets there are.
    pub const COUNT: usize = 1 << Capability::ALL.len();

    /// What a legacy peer offers.
    pub const NONE: Self = Self(0);

    /// What both ends of a stream of ours offer each other.
    pub const STREAM: Self = Self(
        Capability::StreamHalfClose.bit()
            | Capability::StreamExplicitFin.bit()
            | Capability::RelayAbort.bit()
            | Capability::FrameLimit.bit(),
    );

    /// What both ends of a command's stream of ours offer each other.
    pub const EXEC: Self =
        Self(Self::STREAM.0 | Capability::ExecResult.bit() | Capability::ExecTree.bit());

    /// What both ends of a session of ours offer each other; relays of the session inherit it.
    pub const SESSION: Self = Self(
        Self::EXEC.0
            | Capability::SessionLiveness.bit()
            | Capability::SessionDrain.bit()
            | Capability::ExecRelay.bit(),
    );

    /// The set with exactly these members.
    pub fn of(members: impl IntoIterator<Item = Capability>) -> Self {
        Self(members.into_iter().fold(0, |bits, one| bits | one.bit()))
    }

    /// Reads names from the wire. Unknown ones are ignored: they are a newer peer's.
    /// `stream-explicit-fin-v1` implies `stream-half-close-v1`.
    pub fn from_names<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Self {
        let mut set = Self::of(names.into_iter().filter_map(|name| {
            Capability::ALL
                .into_iter()
                .find(|one| one.name() == name.as_ref().trim())
        }));
        if set.has(Capability::StreamExplicitFin) {
            set.0 |= Capability::StreamHalfClose.bit();
        }
        set
    }

    /// What both sets hold.
    #[must_use]
    pub const fn intersect(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether `one` is in the set.
    pub const fn has(self, one: Capability) -> bool {
        self.0 & one.bit() != 0
    }

    /// The set's place among all [`Capabilities::COUNT`] of them, for tables.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The members in a fixed order.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL
            .into_iter()
            .filter(move |one| self.has(*one))
    }

    /// The names on the wire, in a fixed order.
    pub fn names(self) -> Vec<String> {
        self.iter().map(|one| one.name().to_owned()).collect()
    }

    /// How FIN is written on a hop that agreed on this set.
    pub const fn half_close(self) -> HalfClose {
        if self.has(Capability::StreamExplicitFin) {
            HalfClose::Explicit
        } else if self.has(Capability::StreamHalfClose) {
            HalfClose::Response
        } else {
            HalfClose::Unsupported
        }
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set()
            .entries(self.iter().map(Capability::name))
            .finish()
    }
}

/// How FIN is written on one hop. Agreed when the stream opens, never asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HalfClose {
    /// Legacy: END_STREAM in the request direction, the end of the RPC in the response direction.
    Unsupported,
    /// A frame in the response direction, END_STREAM in the request direction.
    Response,
    /// A frame in both directions. A direction that ends without it was aborted.
    Explicit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_ignored_and_explicit_fin_implies_half_close() {
        let set = Capabilities::from_names(["stream-explicit-fin-v1", "warp-drive-v9"]);
        assert_eq!(
            set.names(),
            ["stream-half-close-v1", "stream-explicit-fin-v1"]
        );
        assert_eq!(set.half_close(), HalfClose::Explicit);
    }

    #[test]
    fn names_are_unique_and_lead_back() {
        for one in Capability::ALL {
            let set = Capabilities::from_names([one.name()]);
            assert!(set.has(one), "{one}");
        }
        assert_eq!(
            Capabilities::SESSION,
            Capabilities::of(Capability::ALL),
            "a session offers everything"
        );
    }

    #[test]
    fn a_stream_of_bytes_offers_nothing_of_commands() {
        let of_commands = [
            Capability::ExecRelay,
            Capability::ExecResult,
            Capability::ExecTree,
        ];
        for one in of_commands {
            assert!(!Capabilities::STREAM.has(one), "{one}");
        }
        assert!(!Capabilities::EXEC.has(Capability::ExecRelay));
        assert_eq!(
            Capabilities::EXEC.intersect(Capabilities::STREAM),
            Capabilities::STREAM
        );
    }

    #[test]
    fn the_row_follows_from_the_intersection_alone() {
        let branch = Capabilities::from_names(["stream-half-close-v1"]);
        assert_eq!(
            Capabilities::STREAM.intersect(branch).half_close(),
            HalfClose::Response
        );
        assert_eq!(
            Capabilities::STREAM
                .intersect(Capabilities::NONE)
                .half_close(),
            HalfClose::Unsupported
        );
    }
}
