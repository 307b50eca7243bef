//! A gateway or a supervisor as a process.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tidegate_testkit::probe::{self, Metrics};
use tidegate_testkit::process::{Process, binary};
use tidegate_testkit::wait;

use crate::Options;

/// A daemon of ours that runs, or has run.
#[derive(Debug)]
pub struct Daemon {
    process: Process,
    admin: SocketAddr,
}

impl Daemon {
    /// Starts the program `name` with the configuration at `config` and waits until it serves its
    /// admin address.
    pub(crate) async fn start(name: &str, config: &Path, options: &Options) -> Self {
        let program = binary(name).unwrap_or_else(|error| panic!("{error}"));
        let mut command = if options.one_cpu {
            let mut command = Command::new("taskset");
            command.args(["-c", "0"]).arg(program);
            command
        } else {
            Command::new(program)
        };
        command
            .arg("--config")
            .arg(config)
            .arg(if options.log_everything { "-vv" } else { "-v" })
            .stdin(Stdio::null())
            // What the developer has set must not decide how a test ends.
            .env_remove("RUST_LOG")
            .env_remove("HTTPS_PROXY")
            .env_remove("https_proxy");
        let process = Process::spawn(command).expect("a program that was found can be started");
        let admin = process.address_after("admin listening on ").await;
        Self { process, admin }
    }

    /// The process: its output, its signals, its end.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What `/metrics` says now.
    ///
    /// # Panics
    ///
    /// If the admin address does not answer.
    pub fn metrics(&self) -> Metrics {
        let metrics = probe::scrape(&self.metrics_url());
        metrics.unwrap_or_else(|error| panic!("{error}\n{}", self.process))
    }

    /// Waits until the metric `name`, its labels summed up, has the value `wanted`.
    ///
    /// # Panics
    ///
    /// After `bound`.
    pub async fn until_metric(&self, name: &str, wanted: f64, bound: Duration) {
        let mut seen = f64::NAN;
        let reached = wait::until_async(bound, async || {
            seen = self.metrics().sum(name);
            seen == wanted
        });
        if reached.await.is_err() {
            panic!("{name} is {seen} and not {wanted} after {bound:?}");
        }
    }

    /// Tells whether `/readyz` says yes.
    pub fn is_ready(&self) -> bool {
        probe::get(&format!("http://{}/readyz", self.admin)).is_ok()
    }

    /// Counts the lines of its log that contain `text`.
    pub fn logged(&self, text: &str) -> usize {
        let lines = self.process.stderr().lines();
        lines.iter().filter(|line| line.contains(text)).count()
    }

    /// Waits until `count` lines of its log contain `text`.
    ///
    /// # Panics
    ///
    /// After `bound`.
    pub async fn until_logged(&self, text: &str, count: usize, bound: Duration) {
        let reached = wait::until_async(bound, async || self.logged(text) >= count);
        if reached.await.is_err() {
            panic!(
                "{count} lines with {text:?} did not come within {bound:?}\n{}",
                self.process
            );
        }
    }

    /// Lets it go, and keeps what it wrote.
    pub(crate) fn into_process(self) -> Process {
        self.process
    }

    /// Where health and metrics are served.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin
    }

    pub(crate) fn metrics_url(&self) -> String {
        format!("http://{}/metrics", self.admin)
    }
}
