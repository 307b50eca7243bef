//! The contenders, and the parts their processes play.

use std::fmt;

use clap::ValueEnum;

/// One way to carry a TCP connection from a client to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, ValueEnum)]
pub(crate) enum Subject {
    /// Three plain TCP relays.
    Plain,
    /// Three TCP relays with TLS between them.
    Tls,
    /// Tidegate without TLS.
    Tidegate,
    /// Tidegate with mutual TLS on both hops.
    TidegateTls,
    /// `ssh -L`: one encrypted hop.
    Ssh,
    /// The tunnel `bore`: two processes.
    Bore,
    /// The tunnel `rathole`: two processes.
    Rathole,
    /// Tidegate, two tunnels, the gateway on one thread.
    OneThread,
    /// Tidegate, two tunnels, the gateway on two threads.
    TwoThreads,
}

impl Subject {
    /// The contenders of the measures that compare everybody.
    pub(crate) const ALL: [Self; 7] = [
        Self::Plain,
        Self::Tls,
        Self::Tidegate,
        Self::TidegateTls,
        Self::Ssh,
        Self::Bore,
        Self::Rathole,
    ];

    /// The name in tables, in JSON and on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Tls => "tls",
            Self::Tidegate => "tidegate",
            Self::TidegateTls => "tidegate-tls",
            Self::Ssh => "ssh",
            Self::Bore => "bore",
            Self::Rathole => "rathole",
            Self::OneThread => "one-thread",
            Self::TwoThreads => "two-threads",
        }
    }

    /// Whom its figures are divided by.
    pub(crate) const fn bases(self) -> &'static [Self] {
        match self {
            Self::Plain => &[],
            Self::TidegateTls => &[Self::Plain, Self::Tls, Self::Ssh],
            Self::Tls | Self::Tidegate | Self::Ssh | Self::Bore | Self::Rathole => &[Self::Plain],
            Self::OneThread => &[],
            Self::TwoThreads => &[Self::OneThread],
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Where on the path a process stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    /// Accepts the client's connections: the first relay, `tidegate port-forward`, `ssh`.
    Entry,
    /// The one between: the second relay, the gateway, a tunnel's server.
    Middle,
    /// Dials the target: the last relay, the supervisor, `sshd`, a tunnel's client.
    Exit,
}

impl Role {
    /// The name in tables and in JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Entry => "entry",
            Self::Middle => "middle",
            Self::Exit => "exit",
        }
    }
}
