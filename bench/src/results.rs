//! All samples of a run, and the ratios between them.

use std::collections::BTreeMap;

use crate::load::Direction;
use crate::stats;
use crate::subject::{Role, Subject};

/// What kind of load a figure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Load {
    /// One stream.
    Single,
    /// Many streams through one tunnel.
    Parallel,
    /// Many streams through several tunnels of one gateway.
    Tunnels,
}

/// What is done over and over, from its beginning to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Deed {
    /// A process of the bench's own, on three pipes.
    Spawn,
    /// A stream through the sandbox that carries one byte both ways.
    Stream,
    /// A command in the sandbox.
    Exec,
}

/// How many at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Abreast {
    /// One after the other.
    One,
    /// Several.
    Several,
}

/// What the bench's own client SDK talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Far {
    /// The target, over a stream.
    Target,
    /// A command in the sandbox.
    Command,
}

/// One measured quantity. The order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Figure {
    /// GiB/s, all streams together.
    Throughput(Load, Direction),
    /// Processor seconds per GiB.
    Cpu(Load, Direction, Role),
    /// Processor seconds of the middle process per second.
    Busy(Load, Direction),
    /// Microseconds a byte takes there and back, half of the time.
    RoundTripMedian,
    /// The same, 99 of 100 times.
    RoundTripTail,
    /// Connections opened, used and closed per second.
    Connections,
    /// Processor milliseconds for each of them.
    ConnectionCpu(Role),
    /// KiB of the middle process per idle stream.
    StreamMemory,
    /// Streams open at a time.
    ConcurrentStreams,
    /// KiB of the gateway per idle session.
    SessionMemory,
    /// GiB/s of one stream.
    BulkAlone,
    /// GiB/s of one stream beside stalled ones.
    BulkBesideStalled,
    /// Deeds per second.
    Deeds(Deed, Abreast),
    /// The time of an exec ÷ that of a local spawn and a stream together.
    ExecShare(Abreast),
    /// GiB/s to the client SDK.
    Output(Far),
    /// Processor seconds of gateway and supervisor per GiB of it.
    OutputCpu(Far),
    /// Microseconds a byte takes from the client SDK and back, half of the time.
    EchoMedian(Far),
    /// The same, 99 of 100 times.
    EchoTail(Far),
    /// KiB of the supervisor and its helpers per idle command.
    ExecMemory,
}

impl Figure {
    /// The heading in a report.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Throughput(load, direction) => format!("{}, {}", load.title(), direction.name()),
            Self::Cpu(load, direction, role) => format!(
                "{}, {}: processor time of the {} process",
                load.title(),
                direction.name(),
                role.name()
            ),
            Self::Busy(load, direction) => {
                format!(
                    "{}, {}: how busy the gateway was",
                    load.title(),
                    direction.name()
                )
            }
            Self::RoundTripMedian => "round trip of one byte, median".to_owned(),
            Self::RoundTripTail => "round trip of one byte, 99th percentile".to_owned(),
            Self::Connections => "connections: open, one byte, close".to_owned(),
            Self::ConnectionCpu(role) => {
                format!("connections: processor time of the {} process", role.name())
            }
            Self::StreamMemory => "memory of the middle process per idle stream".to_owned(),
            Self::ConcurrentStreams => "streams open at a time, all usable".to_owned(),
            Self::SessionMemory => "memory of the gateway per idle session".to_owned(),
            Self::BulkAlone => "one stream, down, alone".to_owned(),
            Self::BulkBesideStalled => "one stream, down, beside stalled ones".to_owned(),
            Self::Deeds(deed, abreast) => format!("{}, {}", deed.title(), abreast.title()),
            Self::ExecShare(abreast) => format!(
                "{}, {}: time ÷ local spawn and stream together",
                Deed::Exec.title(),
                abreast.title()
            ),
            Self::Output(far) => format!("bulk output of {}", far.title()),
            Self::OutputCpu(far) => format!(
                "bulk output of {}: processor time of gateway and supervisor",
                far.title()
            ),
            Self::EchoMedian(far) => format!("one byte to {} and back, median", far.title()),
            Self::EchoTail(far) => {
                format!("one byte to {} and back, 99th percentile", far.title())
            }
            Self::ExecMemory => {
                "memory of the supervisor and its helpers per idle command".to_owned()
            }
        }
    }

    /// The unit of its samples.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Throughput(..) | Self::BulkAlone | Self::BulkBesideStalled | Self::Output(_) => {
                "GiB/s"
            }
            Self::Cpu(..) | Self::OutputCpu(_) => "s/GiB",
            Self::Busy(..) => "cores",
            Self::RoundTripMedian
            | Self::RoundTripTail
            | Self::EchoMedian(_)
            | Self::EchoTail(_) => "us",
            Self::Connections | Self::Deeds(..) => "1/s",
            Self::ExecShare(_) => "ratio",
            Self::ConnectionCpu(_) => "ms each",
            Self::StreamMemory | Self::SessionMemory | Self::ExecMemory => "KiB",
            Self::ConcurrentStreams => "streams",
        }
    }
}

impl Load {
    const fn title(self) -> &'static str {
        match self {
            Self::Single => "one stream",
            Self::Parallel => "many streams",
            Self::Tunnels => "many streams, two tunnels",
        }
    }
}

impl Deed {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Spawn, Self::Stream, Self::Exec];

    const fn title(self) -> &'static str {
        match self {
            Self::Spawn => "true, spawned locally",
            Self::Stream => "a stream: open, one byte, close",
            Self::Exec => "true, run in the sandbox",
        }
    }
}

impl Abreast {
    /// Both of them.
    pub(crate) const ALL: [Self; 2] = [Self::One, Self::Several];

    const fn title(self) -> &'static str {
        match self {
            Self::One => "one at a time",
            Self::Several => "several at a time",
        }
    }
}

impl Far {
    const fn title(self) -> &'static str {
        match self {
            Self::Target => "the target",
            Self::Command => "a command",
        }
    }
}

/// One sample of each figure a measure yields.
pub(crate) type Sample = Vec<(Figure, f64)>;

/// Everything a run found out.
#[derive(Default)]
pub(crate) struct Results {
    samples: BTreeMap<Figure, BTreeMap<Subject, Vec<f64>>>,
    /// Contenders that did not take part, and why.
    pub(crate) absent: Vec<(Subject, String)>,
    /// What went wrong.
    pub(crate) failures: Vec<String>,
}

impl Results {
    /// Adds the sample of one round. Rounds are told apart by order alone: a subject that fails
    /// takes no part in later rounds of that measure.
    pub(crate) fn record(&mut self, subject: Subject, sample: &[(Figure, f64)]) {
        for (figure, value) in sample {
            self.samples
                .entry(*figure)
                .or_default()
                .entry(subject)
                .or_default()
                .push(*value);
        }
    }

    /// Notes once that a contender takes no part.
    pub(crate) fn leave_out(&mut self, subject: Subject, reason: String) {
        if !self.absent.iter().any(|(absent, _)| *absent == subject) {
            self.absent.push((subject, reason));
        }
    }

    /// Every figure with the samples of each subject.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (Figure, &BTreeMap<Subject, Vec<f64>>)> {
        self.samples
            .iter()
            .map(|(figure, subjects)| (*figure, subjects))
    }

    /// The samples of one subject; none if it was not measured.
    pub(crate) fn of(&self, figure: Figure, subject: Subject) -> &[f64] {
        self.samples
            .get(&figure)
            .and_then(|all| all.get(&subject))
            .map_or(&[], Vec::as_slice)
    }

    /// The median of same-round ratios.
    pub(crate) fn ratio(&self, top: (Figure, Subject), bottom: (Figure, Subject)) -> Option<f64> {
        let pairs = self
            .of(top.0, top.1)
            .iter()
            .zip(self.of(bottom.0, bottom.1));
        let ratios: Vec<f64> = pairs
            .map(|(top, bottom)| top / bottom)
            .filter(|ratio| ratio.is_finite())
            .collect();
        stats::median(&ratios)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_pairs_rounds_before_it_takes_the_median() {
        let mut results = Results::default();
        for (ours, plain) in [(1.0, 2.0), (9.0, 9.0), (3.0, 4.0)] {
            results.record(Subject::Tidegate, &[(Figure::Connections, ours)]);
            results.record(Subject::Plain, &[(Figure::Connections, plain)]);
        }
        let ratio = results.ratio(
            (Figure::Connections, Subject::Tidegate),
            (Figure::Connections, Subject::Plain),
        );
        assert_eq!(ratio, Some(0.75));
    }

    #[test]
    fn what_was_not_measured_has_no_ratio() {
        let pair = (Figure::Connections, Subject::Plain);
        assert_eq!(Results::default().ratio(pair, pair), None);
    }
}
