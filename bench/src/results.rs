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
        }
    }

    /// The unit of its samples.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Throughput(..) | Self::BulkAlone | Self::BulkBesideStalled => "GiB/s",
            Self::Cpu(..) => "s/GiB",
            Self::Busy(..) => "cores",
            Self::RoundTripMedian | Self::RoundTripTail => "us",
            Self::Connections => "1/s",
            Self::ConnectionCpu(_) => "ms each",
            Self::StreamMemory | Self::SessionMemory => "KiB",
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
