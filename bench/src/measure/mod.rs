//! The measures: what is done to each contender.

mod connections;
mod idle_sessions;
mod idle_streams;
mod round_trip;
mod stalled;
mod throughput;

use anyhow::Result;
use clap::ValueEnum;

use crate::chain::Chain;
use crate::options::Plan;
use crate::results::{Load, Sample};
use crate::subject::Subject;

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// One stream, down and up: throughput and processor time.
    Stream,
    /// Many streams at once, down and up: throughput and processor time.
    Parallel,
    /// One byte there and back.
    RoundTrip,
    /// Connections opened, used and closed.
    Connections,
    /// One stream beside stalled ones.
    Stalled,
    /// Memory of idle streams, and how many there may be.
    IdleStreams,
    /// Memory of idle sessions.
    IdleSessions,
    /// Many streams through two tunnels: a gateway with one thread and one with two.
    Threads,
}

impl Measure {
    /// The measures every contender goes through, interleaved.
    pub(crate) const COMPARED: [Self; 5] = [
        Self::Stream,
        Self::Parallel,
        Self::RoundTrip,
        Self::Connections,
        Self::Stalled,
    ];

    /// The measures that need a gateway nothing has happened to, taken once.
    pub(crate) const FRESH: [Self; 2] = [Self::IdleStreams, Self::IdleSessions];

    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Parallel => "parallel",
            Self::RoundTrip => "round-trip",
            Self::Connections => "connections",
            Self::Stalled => "stalled",
            Self::IdleStreams => "idle-streams",
            Self::IdleSessions => "idle-sessions",
            Self::Threads => "threads",
        }
    }

    /// Whether it says anything about `subject`.
    pub(crate) const fn concerns(self, subject: Subject) -> bool {
        match self {
            Self::Stream | Self::Parallel | Self::RoundTrip | Self::Connections => true,
            Self::Stalled => {
                matches!(
                    subject,
                    Subject::Tidegate | Subject::TidegateTls | Subject::Ssh
                )
            }
            Self::IdleStreams => {
                matches!(
                    subject,
                    Subject::Plain | Subject::Tidegate | Subject::TidegateTls
                )
            }
            Self::IdleSessions => matches!(subject, Subject::Tidegate | Subject::TidegateTls),
            Self::Threads => matches!(subject, Subject::OneThread | Subject::TwoThreads),
        }
    }

    /// Takes one sample.
    pub(crate) async fn sample(self, chain: &Chain, plan: &Plan) -> Result<Sample> {
        match self {
            Self::Stream => throughput::sample(chain, Load::Single, plan).await,
            Self::Parallel => throughput::sample(chain, Load::Parallel, plan).await,
            Self::Threads => throughput::sample(chain, Load::Tunnels, plan).await,
            Self::RoundTrip => round_trip::sample(chain, plan).await,
            Self::Connections => connections::sample(chain, plan).await,
            Self::Stalled => stalled::sample(chain, plan).await,
            Self::IdleStreams => idle_streams::sample(chain, plan).await,
            Self::IdleSessions => idle_sessions::sample(chain, plan).await,
        }
    }
}
