//! The measures: what is done to each contender.

mod connections;
mod exec_echo;
mod exec_output;
mod execs;
mod idle_execs;
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
    /// Commands run, one and several at a time, beside local spawns and streams.
    Execs,
    /// A command's bulk output, beside a stream: throughput and processor time.
    ExecOutput,
    /// A keystroke's echo on a terminal, beside one byte over a stream.
    ExecEcho,
    /// Memory of idle streams, and how many there may be.
    IdleStreams,
    /// Memory of idle sessions.
    IdleSessions,
    /// Memory of idle commands.
    IdleExecs,
    /// Many streams through two tunnels: a gateway with one thread and one with two.
    Threads,
}

impl Measure {
    /// The measures every contender goes through, interleaved.
    pub(crate) const COMPARED: [Self; 8] = [
        Self::Stream,
        Self::Parallel,
        Self::RoundTrip,
        Self::Connections,
        Self::Stalled,
        Self::Execs,
        Self::ExecOutput,
        Self::ExecEcho,
    ];

    /// The measures that need a gateway nothing has happened to, taken once.
    pub(crate) const FRESH: [Self; 3] = [Self::IdleStreams, Self::IdleSessions, Self::IdleExecs];

    /// The name on the command line.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Parallel => "parallel",
            Self::RoundTrip => "round-trip",
            Self::Connections => "connections",
            Self::Stalled => "stalled",
            Self::Execs => "execs",
            Self::ExecOutput => "exec-output",
            Self::ExecEcho => "exec-echo",
            Self::IdleStreams => "idle-streams",
            Self::IdleSessions => "idle-sessions",
            Self::IdleExecs => "idle-execs",
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
            Self::IdleSessions | Self::Execs | Self::ExecOutput | Self::ExecEcho => {
                matches!(subject, Subject::Tidegate | Subject::TidegateTls)
            }
            Self::IdleExecs => matches!(subject, Subject::Tidegate),
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
            Self::Execs => execs::sample(chain, plan).await,
            Self::ExecOutput => exec_output::sample(chain, plan).await,
            Self::ExecEcho => exec_echo::sample(chain, plan).await,
            Self::IdleStreams => idle_streams::sample(chain, plan).await,
            Self::IdleSessions => idle_sessions::sample(chain, plan).await,
            Self::IdleExecs => idle_execs::sample(chain, plan).await,
        }
    }
}
