//! What Tidegate wants to reach, and whether it does.

use std::fmt;

use crate::load::Direction;
use crate::results::{Abreast, Far, Figure, Load, Results};
use crate::stats;
use crate::subject::{Role, Subject};

/// One goal: a figure, or a ratio of two, and its bound.
pub(crate) struct Goal {
    /// What is wanted, in words.
    pub(crate) title: String,
    /// How much of it.
    pub(crate) bound: Bound,
    top: (Figure, Subject),
    bottom: Option<(Figure, Subject)>,
}

/// How much is wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    /// More is better.
    AtLeast(f64),
    /// Less is better.
    AtMost(f64),
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(value) => write!(f, "≥ {value}"),
            Self::AtMost(value) => write!(f, "≤ {value}"),
        }
    }
}

/// How a goal ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Verdict {
    /// Reached, with this value.
    Reached(f64),
    /// Missed, with this value.
    Missed(f64),
    /// Not part of this run.
    Unknown,
}

impl Goal {
    /// Compares with what was measured.
    pub(crate) fn judge(&self, results: &Results) -> Verdict {
        let value = match self.bottom {
            Some(bottom) => results.ratio(self.top, bottom),
            None => stats::median(results.of(self.top.0, self.top.1)),
        };
        match (value, self.bound) {
            (None, _) => Verdict::Unknown,
            (Some(value), Bound::AtLeast(least)) if value >= least => Verdict::Reached(value),
            (Some(value), Bound::AtMost(most)) if value <= most => Verdict::Reached(value),
            (Some(value), Bound::AtLeast(_) | Bound::AtMost(_)) => Verdict::Missed(value),
        }
    }

    fn ratio(title: impl Into<String>, figure: Figure, bound: Bound) -> Self {
        Self::between(title, figure, Subject::Tidegate, Subject::Plain, bound)
    }

    fn between(
        title: impl Into<String>,
        figure: Figure,
        top: Subject,
        bottom: Subject,
        bound: Bound,
    ) -> Self {
        Self {
            title: title.into(),
            bound,
            top: (figure, top),
            bottom: Some((figure, bottom)),
        }
    }

    fn value(title: &str, figure: Figure, bound: Bound) -> Self {
        Self {
            title: title.to_owned(),
            bound,
            top: (figure, Subject::Tidegate),
            bottom: None,
        }
    }
}

/// All goals, in the order of the report.
pub(crate) fn all() -> Vec<Goal> {
    let mut goals: Vec<_> = Direction::ALL.into_iter().flat_map(throughput).collect();
    goals.extend([
        Goal::ratio(
            "round trip of one byte, median ÷ three plain hops",
            Figure::RoundTripMedian,
            Bound::AtMost(1.3),
        ),
        Goal::ratio(
            "connections per second ÷ three plain hops",
            Figure::Connections,
            Bound::AtLeast(0.9),
        ),
        Goal::value(
            "gateway memory per idle stream, KiB",
            Figure::StreamMemory,
            Bound::AtMost(8.0),
        ),
        Goal::value(
            "streams open at a time on one session",
            Figure::ConcurrentStreams,
            Bound::AtLeast(10_000.0),
        ),
        Goal::value(
            "gateway memory per idle session, KiB",
            Figure::SessionMemory,
            Bound::AtMost(32.0),
        ),
        Goal {
            title: "one stream beside stalled ones ÷ alone".to_owned(),
            bound: Bound::AtLeast(0.9),
            top: (Figure::BulkBesideStalled, Subject::Tidegate),
            bottom: Some((Figure::BulkAlone, Subject::Tidegate)),
        },
        Goal::between(
            "many streams, two tunnels, down: two gateway threads ÷ one",
            Figure::Throughput(Load::Tunnels, Direction::Down),
            Subject::TwoThreads,
            Subject::OneThread,
            Bound::AtLeast(1.0),
        ),
    ]);
    goals.extend(commands());
    goals
}

/// The goals of commands, each of which is compared with streams of the same client.
fn commands() -> [Goal; 5] {
    let between = |title: &str, top, bottom, most| Goal {
        title: title.to_owned(),
        bound: Bound::AtMost(most),
        top: (top, Subject::Tidegate),
        bottom: Some((bottom, Subject::Tidegate)),
    };
    [
        Goal::value(
            "a command, time ÷ (local spawn + a stream)",
            Figure::ExecShare(Abreast::One),
            Bound::AtMost(1.0),
        ),
        Goal::value(
            "a command, 8 at a time, time ÷ (local spawn + a stream)",
            Figure::ExecShare(Abreast::Several),
            Bound::AtMost(1.0),
        ),
        between(
            "a command's output, time ÷ a stream's",
            Figure::Output(Far::Target),
            Figure::Output(Far::Command),
            1.3,
        ),
        between(
            "a command's output, processor time ÷ a stream's",
            Figure::OutputCpu(Far::Command),
            Figure::OutputCpu(Far::Target),
            1.3,
        ),
        between(
            "a keystroke's echo on a terminal, median ÷ a stream's",
            Figure::EchoMedian(Far::Command),
            Figure::EchoMedian(Far::Target),
            1.5,
        ),
    ]
}

/// The goals of bulk data in one direction.
fn throughput(direction: Direction) -> [Goal; 5] {
    let way = direction.name();
    let single = Figure::Throughput(Load::Single, direction);
    [
        Goal::ratio(
            format!("gateway processor time per GiB {way} ÷ a plain relay's"),
            Figure::Cpu(Load::Single, direction, Role::Middle),
            Bound::AtMost(1.1),
        ),
        Goal::ratio(
            format!("one stream {way} ÷ three plain hops"),
            single,
            Bound::AtLeast(0.9),
        ),
        Goal::ratio(
            format!("64 streams {way}, sum ÷ three plain hops"),
            Figure::Throughput(Load::Parallel, direction),
            Bound::AtLeast(0.9),
        ),
        Goal::between(
            format!("TLS, one stream {way} ÷ TLS relays"),
            single,
            Subject::TidegateTls,
            Subject::Tls,
            Bound::AtLeast(0.9),
        ),
        Goal::between(
            format!("TLS, one stream {way} ÷ ssh -L"),
            single,
            Subject::TidegateTls,
            Subject::Ssh,
            Bound::AtLeast(1.0),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_good_side() {
        let goal = Goal::value("", Figure::StreamMemory, Bound::AtMost(8.0));
        let judged = |value| {
            let mut results = Results::default();
            results.record(Subject::Tidegate, &[(Figure::StreamMemory, value)]);
            goal.judge(&results)
        };
        assert_eq!(judged(8.0), Verdict::Reached(8.0));
        assert_eq!(judged(8.1), Verdict::Missed(8.1));
        assert_eq!(goal.judge(&Results::default()), Verdict::Unknown);
    }
}
