//! The leak probe: what processes held before a test, and whether they hold no more after it.

use std::{collections::BTreeMap, fmt, time::Duration};

use super::{
    metrics::scrape,
    proc::{descendants, descriptors, resident_memory},
    sockets::{SocketState, open_sockets},
};
use crate::wait;

/// How often what processes hold is measured again.
const STEP: Duration = Duration::from_millis(50);

/// What some processes held at one moment.
///
/// Take it when the programs have settled and each path of the test was used once, so that
/// connections which are kept for the next stream are part of it.
#[derive(Clone, Debug)]
pub struct Baseline {
    processes: Vec<u32>,
    metrics: Vec<String>,
    holdings: Holdings,
}

/// Named amounts, for instance `process 4711: sockets in CloseWait`.
type Amounts = BTreeMap<String, f64>;

#[derive(Clone, Debug)]
struct Holdings {
    /// May shrink, must not grow.
    counted: Amounts,
    /// Must come back to the same value.
    gauges: Amounts,
    /// Only reported: an allocator returns memory when it likes.
    memory: Amounts,
}

impl Baseline {
    /// Measures these processes, and the gauges at these `/metrics` URLs.
    pub fn take(processes: &[u32], metrics: &[String]) -> Self {
        let holdings = Holdings::measure(processes, metrics);
        Self {
            processes: processes.to_vec(),
            metrics: metrics.to_vec(),
            holdings,
        }
    }

    /// Blocks until nothing is held that was not held at the baseline.
    ///
    /// # Errors
    ///
    /// [`Leak`] with each difference that is left after `bound`.
    pub fn wait_restored_blocking(&self, bound: Duration) -> Result<(), Leak> {
        let mut left = Vec::new();
        let restored = wait::until_looking(STEP, bound, || {
            left = self.differences();
            left.is_empty()
        });
        restored.map_err(|_| self.leak(bound, left))
    }

    /// Waits until nothing is held that was not held at the baseline.
    ///
    /// # Errors
    ///
    /// [`Leak`] with each difference that is left after `bound`.
    pub async fn wait_restored(&self, bound: Duration) -> Result<(), Leak> {
        let probe = self.clone();
        let waited = tokio::task::spawn_blocking(move || probe.wait_restored_blocking(bound));
        waited.await.expect("measuring does not panic")
    }

    fn leak(&self, bound: Duration, differences: Vec<Difference>) -> Leak {
        let memory = Holdings::measure(&self.processes, &[]).memory;
        let memory = memory.into_iter().filter_map(|(what, now)| {
            let before = *self.holdings.memory.get(&what)?;
            Some(Difference {
                what,
                before,
                now: Some(now),
            })
        });
        Leak {
            bound,
            differences,
            memory: memory.collect(),
        }
    }

    fn differences(&self) -> Vec<Difference> {
        let now = Holdings::measure(&self.processes, &self.metrics);
        let grown = compare(&self.holdings.counted, &now.counted, |before, now| {
            now > before
        });
        let moved = compare(&self.holdings.gauges, &now.gauges, |before, now| {
            now != before
        });
        let unseen = self
            .holdings
            .gauges
            .iter()
            .filter(|(what, value)| **value != 0.0 && !now.gauges.contains_key(*what));
        let unseen = unseen.map(|(what, before)| Difference {
            what: what.clone(),
            before: *before,
            now: None,
        });
        grown.chain(moved).chain(unseen).collect()
    }
}

fn compare(
    before: &Amounts,
    now: &Amounts,
    differs: impl Fn(f64, f64) -> bool,
) -> impl Iterator<Item = Difference> {
    now.iter().filter_map(move |(what, now)| {
        let before = before.get(what).copied().unwrap_or(0.0);
        let found = Difference {
            what: what.clone(),
            before,
            now: Some(*now),
        };
        differs(before, *now).then_some(found)
    })
}

impl Holdings {
    fn measure(processes: &[u32], metrics: &[String]) -> Self {
        let mut holdings = Self {
            counted: Amounts::new(),
            gauges: Amounts::new(),
            memory: Amounts::new(),
        };
        processes
            .iter()
            .for_each(|&process| holdings.add_process(process));
        metrics.iter().for_each(|url| holdings.add_gauges(url));
        holdings
    }

    fn add_process(&mut self, process: u32) {
        let mut count = |what: String, number: f64| {
            *self
                .counted
                .entry(format!("process {process}: {what}"))
                .or_default() += number;
        };
        count("descriptors".into(), descriptors(process).len() as f64);
        count(
            "processes below it".into(),
            descendants(process).len() as f64,
        );
        for socket in open_sockets(process) {
            count(
                format!("sockets in {:?}", socket.state),
                lasting(socket.state),
            );
        }
        let memory = resident_memory(process).unwrap_or(0) as f64 / 1_048_576.0;
        self.memory
            .insert(format!("process {process}: resident MiB"), memory);
    }

    fn add_gauges(&mut self, url: &str) {
        match scrape(url) {
            Ok(metrics) => {
                let gauges = metrics
                    .gauges
                    .into_iter()
                    .filter(|(gauge, _)| is_a_holding(gauge));
                self.gauges
                    .extend(gauges.map(|(gauge, value)| (format!("{url} {gauge}"), value)));
            }
            Err(error) => {
                self.counted.insert(format!("{url}: {error}"), 1.0);
            }
        }
    }
}

/// Counts all states but those a healthy socket only passes through.
fn lasting(state: SocketState) -> f64 {
    match state {
        SocketState::Established
        | SocketState::FinWait2
        | SocketState::CloseWait
        | SocketState::Listening
        | SocketState::SynSent => 1.0,
        SocketState::SynReceived
        | SocketState::FinWait1
        | SocketState::TimeWait
        | SocketState::Closed
        | SocketState::LastAck
        | SocketState::Closing
        | SocketState::NewSynReceived => 0.0,
    }
}

/// Memory, times and ages move on their own; counts of things come back.
fn is_a_holding(gauge: &str) -> bool {
    let name = gauge.split('{').next().unwrap_or(gauge);
    !(name.contains("_process_") || name.starts_with("process_") || name.ends_with("_seconds"))
}

/// What processes still hold, or have lost, against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Leak {
    bound: Duration,
    differences: Vec<Difference>,
    memory: Vec<Difference>,
}

#[derive(Clone, Debug, PartialEq)]
struct Difference {
    what: String,
    before: f64,
    now: Option<f64>,
}

impl std::error::Error for Leak {}

impl fmt::Display for Leak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "not back at the baseline after {:?}:", self.bound)?;
        self.differences
            .iter()
            .try_for_each(|difference| writeln!(f, "  {difference}"))?;
        self.memory
            .iter()
            .try_for_each(|memory| writeln!(f, "  (for information) {memory}"))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, before, now } = self;
        match now {
            Some(now) => write!(f, "{what}: {before:.0} before, {now:.0} now"),
            None => write!(f, "{what}: {before:.0} before, not reported now"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        process::Process,
        socket::Socket,
        target::{Step, Target},
        wait::GENEROUS,
    };

    const SOON: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn a_child_that_stays_is_named() {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "echo up; read x; sleep 60 & echo more; wait"]);
        command.stdin(std::process::Stdio::piped());
        let process = Process::spawn(command).unwrap();
        process.line("up").await;
        let baseline = Baseline::take(&[process.id()], &[]);
        assert_eq!(baseline.wait_restored(GENEROUS).await, Ok(()));
        std::io::Write::write_all(&mut process.take_stdin().unwrap(), b"\n").unwrap();
        process.line("more").await;
        let leak = baseline.wait_restored(SOON).await.unwrap_err().to_string();
        assert!(
            leak.contains("processes below it: 0 before, 1 now"),
            "{leak}"
        );
    }

    #[tokio::test]
    async fn a_gauge_that_moved_is_named() {
        let page = |value| {
            let text = format!("# TYPE a_streams gauge\na_streams {value}\n");
            Step::Send(format!("HTTP/1.1 200 OK\r\n\r\n{text}").into())
        };
        let first = Target::start([page(1), Step::Finish, Step::ReadToEnd]).unwrap();
        let url = format!("http://{}/metrics", first.address());
        let baseline = Baseline::take(&[], &[url]);
        assert_eq!(baseline.wait_restored(GENEROUS).await, Ok(()));
        let address = first.address();
        drop(first);
        let _second = Target::start_on(address, [page(2), Step::Finish, Step::ReadToEnd]).unwrap();
        let leak = baseline.wait_restored(SOON).await.unwrap_err().to_string();
        assert!(leak.contains("a_streams: 1 before, 2 now"), "{leak}");
    }

    #[tokio::test]
    async fn a_socket_that_stays_open_is_named() {
        let target = Target::silent().unwrap();
        let own = std::process::id();
        let baseline = Baseline::take(&[own], &[]);
        let _client = Socket::connect(target.address()).await.unwrap();
        let leak = baseline.wait_restored(SOON).await.unwrap_err().to_string();
        assert!(leak.contains("sockets in Established"), "{leak}");
    }
}
