//! The metrics of the process itself, read from `/proc` when somebody asks.

use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

/// Registers `process_*`, where the system tells them. `registry` should have the prefix `tidegate`.
/// Now counts as the start of the process.
pub fn register(registry: &mut Registry) {
    let started = SystemTime::now().duration_since(UNIX_EPOCH);
    registry.register_collector(Box::new(Process {
        started: started.unwrap_or_default().as_secs(),
    }));
}

#[derive(Debug)]
struct Process {
    /// In seconds since 1970.
    started: u64,
}

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let stat = Stat::read();
        let gauges = [
            (
                "resident_memory",
                "Resident memory",
                Some(Unit::Bytes),
                stat.resident_bytes,
            ),
            (
                "virtual_memory",
                "Virtual memory",
                Some(Unit::Bytes),
                stat.virtual_bytes,
            ),
            (
                "start_time",
                "When the process started, since 1970",
                Some(Unit::Seconds),
                Some(self.started),
            ),
            ("threads", "Threads", None, stat.threads),
            ("open_fds", "Open file descriptors", None, stat.open_fds),
            (
                "max_fds",
                "Most file descriptors that may be open",
                None,
                stat.max_fds,
            ),
        ];
        for (name, help, unit, value) in gauges {
            let Some(value) = value else { continue };
            let gauge = ConstGauge::new(value);
            let name = format!("process_{name}");
            let metric =
                encoder.encode_descriptor(&name, help, unit.as_ref(), gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        if let Some(seconds) = stat.cpu_seconds {
            let counter = ConstCounter::new(seconds);
            let metric = encoder.encode_descriptor(
                "process_cpu",
                "Processor time in user and kernel mode",
                Some(&Unit::Seconds),
                counter.metric_type(),
            )?;
            counter.encode(metric)?;
        }
        Ok(())
    }
}

/// What the system tells of us; nothing where there is no `/proc`.
#[derive(Debug, Default)]
struct Stat {
    cpu_seconds: Option<f64>,
    threads: Option<u64>,
    virtual_bytes: Option<u64>,
    resident_bytes: Option<u64>,
    open_fds: Option<u64>,
    max_fds: Option<u64>,
}

impl Stat {
    fn read() -> Self {
        let Ok(stat) = std::fs::read_to_string("/proc/self/stat") else {
            return Self::default();
        };
        // The directory itself is one of them while it is read.
        let fds =
            std::fs::read_dir("/proc/self/fd").map(|dir| dir.count().saturating_sub(1) as u64);
        Self {
            open_fds: fds.ok(),
            max_fds: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
            ..Self::parse(&stat)
        }
    }

    /// Reads the fields behind the program's name, which may hold anything, blanks included.
    fn parse(stat: &str) -> Self {
        let behind_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let fields: Vec<&str> = behind_name.split_ascii_whitespace().collect();
        // proc_pid_stat(5) counts from 1 and the name is its field 2.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let cpu = field(14).zip(field(15));
        Self {
            cpu_seconds: cpu.map(|(user, system)| (user + system) as f64 / ticks),
            threads: field(20),
            virtual_bytes: field(23),
            resident_bytes: field(24).map(|pages| pages * rustix::param::page_size() as u64),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_moves_no_field() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 0 0 0 0 0 150 50 0 0 20 0 9 0 5 4096 3 0";
        let stat = Stat::parse(stat);
        assert_eq!((stat.threads, stat.virtual_bytes), (Some(9), Some(4096)));
        assert!(stat.cpu_seconds.unwrap() > 0.0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_measured() {
        let mut registry = Registry::with_prefix("tidegate");
        register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for name in [
            "cpu_seconds_total",
            "resident_memory_bytes",
            "start_time_seconds",
            "open_fds",
            "threads",
        ] {
            assert!(
                text.contains(&format!("\ntidegate_process_{name} ")),
                "{name} in\n{text}"
            );
        }
    }
}
