//! What the kernel says about this process.

use std::fs;
use std::sync::atomic::AtomicU64;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The figures that every process has, under the names that dashboards expect.
#[derive(Debug)]
pub(super) struct Process {
    open_fds: Gauge,
    max_fds: Gauge,
    threads: Gauge,
    resident: Gauge,
    cpu: Counter<f64, AtomicU64>,
}

impl Process {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let process = Self {
            open_fds: Gauge::default(),
            max_fds: Gauge::default(),
            threads: Gauge::default(),
            resident: Gauge::default(),
            cpu: Counter::default(),
        };
        let started: Gauge = Gauge::default();
        started.set(seconds_now());
        let mut gauge = |name: &str, help: &str, gauge: &Gauge| {
            registry.register(format!("tidegate_process_{name}"), help, gauge.clone());
        };
        gauge("open_fds", "Descriptors that are open", &process.open_fds);
        gauge("max_fds", "Descriptors that may be open", &process.max_fds);
        gauge("threads", "Threads", &process.threads);
        gauge("resident_memory_bytes", "Memory in use", &process.resident);
        gauge(
            "start_time_seconds",
            "When the process started, since 1970",
            &started,
        );
        let cpu = "Processor time used, in user and system mode";
        registry.register("tidegate_process_cpu_seconds", cpu, process.cpu.clone());
        process
    }

    /// Reads them. What the system does not tell stays as it was.
    pub(super) fn set(&self) {
        if let Ok(open) = fs::read_dir("/proc/self/fd") {
            // The directory itself is one of them while it is read.
            self.open_fds.set(open.count() as i64 - 1);
        }
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        self.max_fds.set(
            limit
                .current
                .and_then(|max| i64::try_from(max).ok())
                .unwrap_or(-1),
        );
        if let Some(stat) = fs::read_to_string("/proc/self/stat")
            .ok()
            .as_deref()
            .and_then(Stat::read)
        {
            self.threads.set(stat.threads);
            self.resident
                .set(stat.resident_pages * rustix::param::page_size() as i64);
            let seconds = stat.ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
            self.cpu.inc_by((seconds - self.cpu.get()).max(0.0));
        }
    }
}

/// Some fields of `/proc/self/stat` (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    ticks: u64,
    threads: i64,
    resident_pages: i64,
}

impl Stat {
    fn read(line: &str) -> Option<Self> {
        // The second field is the program's name in parentheses, which may hold anything.
        let fields: Vec<&str> = line.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        let ticks = field(14)?.parse::<u64>().ok()? + field(15)?.parse::<u64>().ok()?;
        Some(Self {
            ticks,
            threads: field(20)?.parse().ok()?,
            resident_pages: field(24)?.parse().ok()?,
        })
    }
}

fn seconds_now() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_shifts_nothing() {
        let line = "1 (a) b (c)) S 1 1 1 0 -1 4194560 9 9 9 9 30 12 0 0 20 0 7 0 5 1000 250 9 9";
        let stat = Stat::read(line).unwrap();
        assert_eq!(
            stat,
            Stat {
                ticks: 42,
                threads: 7,
                resident_pages: 250
            }
        );
    }
}
