//! The command line, and the sizes that follow from it.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::measure::Measure;
use crate::subject::Subject;

/// What to run, how long, and how to show it.
#[derive(Args)]
pub(crate) struct Options {
    /// Small sizes and two rounds: shows that everything works, measures little
    #[arg(long)]
    pub(crate) quick: bool,

    /// Rounds that count [default: 7, quick: 2]
    #[arg(long, value_name = "N")]
    pub(crate) rounds: Option<usize>,

    /// Rounds before them that do not [default: 1]
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) warm_up: usize,

    /// Run only this measure (repeatable)
    #[arg(long, value_name = "MEASURE")]
    pub(crate) only: Vec<Measure>,

    /// Run only this contender (repeatable)
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Vec<Subject>,

    /// Data moved per throughput sample, in MiB [default: 1024, quick: 128]
    #[arg(long, value_name = "MIB")]
    pub(crate) mebibytes: Option<u64>,

    /// Where the Tidegate programs are [default: beside this program]
    #[arg(long, value_name = "DIR")]
    pub(crate) bin_dir: Option<PathBuf>,

    /// How to show the results
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) output: Output,

    /// Exit with 1 if a goal is missed, too (a measure that fails always does that)
    #[arg(long)]
    pub(crate) strict: bool,
}

/// How to show the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Tables.
    Text,
    /// One object with every raw sample.
    Json,
}

impl Options {
    /// Whether `measure` was asked for.
    pub(crate) fn wants(&self, measure: Measure) -> bool {
        self.only.is_empty() || self.only.contains(&measure)
    }

    /// Whether `subject` was asked for.
    pub(crate) fn wants_subject(&self, subject: Subject) -> bool {
        self.subject.is_empty() || self.subject.contains(&subject)
    }

    /// The sizes of this run.
    pub(crate) fn plan(&self) -> Plan {
        let base = if self.quick { Plan::QUICK } else { Plan::FULL };
        Plan {
            rounds: self.rounds.unwrap_or(base.rounds).max(1),
            warm_up: self.warm_up,
            sample_bytes: self
                .mebibytes
                .map_or(base.sample_bytes, |mebibytes| mebibytes << 20),
            ..base
        }
    }
}

/// The sizes of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Rounds that count.
    pub(crate) rounds: usize,
    /// Rounds before them that do not.
    pub(crate) warm_up: usize,
    /// Bytes moved per throughput sample, over one stream or over all of them together.
    pub(crate) sample_bytes: u64,
    /// Streams of the parallel throughput.
    pub(crate) parallel_streams: usize,
    /// One-byte round trips per sample.
    pub(crate) round_trips: usize,
    /// How long connections are opened and closed per sample, and commands run one at a time, and
    /// several at a time.
    pub(crate) connect_time: Duration,
    /// How many connections are in the making at a time.
    pub(crate) connect_workers: usize,
    /// Idle streams on one session.
    pub(crate) idle_streams: usize,
    /// Idle sessions on one gateway.
    pub(crate) idle_sessions: usize,
    /// Stalled streams beside the bulk one.
    pub(crate) stalled_streams: usize,
    /// How many commands run at a time where several do.
    pub(crate) exec_workers: usize,
    /// Idle commands in one sandbox.
    pub(crate) idle_execs: usize,
}

impl Plan {
    const FULL: Self = Self {
        rounds: 7,
        warm_up: 1,
        sample_bytes: 1 << 30,
        parallel_streams: 64,
        round_trips: 5_000,
        connect_time: Duration::from_secs(2),
        connect_workers: 16,
        idle_streams: 10_000,
        idle_sessions: 2_000,
        stalled_streams: 100,
        exec_workers: 8,
        idle_execs: 100,
    };

    const QUICK: Self = Self {
        rounds: 2,
        sample_bytes: 128 << 20,
        round_trips: 500,
        connect_time: Duration::from_millis(500),
        ..Self::FULL
    };
}
