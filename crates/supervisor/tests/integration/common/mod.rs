//! A supervisor in the test's process, and a gateway that says what the test tells it.

pub(crate) mod gateway;

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_lifecycle::id::SandboxName;
use tidegate_supervisor::config::Threads;
use tidegate_supervisor::{Config, Phase, StopReason, Supervisor};
use tidegate_testkit::wait::{GENEROUS, within};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A supervisor that runs until it is stopped or dropped.
pub(crate) struct Running {
    stop: CancellationToken,
    phase: watch::Receiver<Phase>,
    task: JoinSet<Result<(), StopReason>>,
}

/// The configuration of a supervisor for `gateway`, with little to wait for.
pub(crate) fn config(gateway: SocketAddr) -> Config {
    let sandbox = SandboxName::parse("box").unwrap();
    let mut config = Config::new(format!("http://{gateway}"), sandbox);
    config.threads = Threads(2);
    config.redial_min = Duration::from_millis(20);
    config.redial_max = Duration::from_millis(200);
    config
}

impl Running {
    pub(crate) fn start(config: Config) -> Self {
        let supervisor = Supervisor::new(config).unwrap();
        let stop = CancellationToken::new();
        let phase = supervisor.phase();
        let mut task = JoinSet::new();
        let told = stop.clone();
        task.spawn(async move { supervisor.run(told).await });
        Self { stop, phase, task }
    }

    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits for the end of the supervisor.
    pub(crate) async fn ended(&mut self) -> Result<(), StopReason> {
        let ended = within(GENEROUS, "the supervisor's end", self.task.join_next()).await;
        ended.unwrap().unwrap()
    }

    /// Whether the supervisor goes on for as long as `bound`.
    pub(crate) async fn outlives(&mut self, bound: Duration) -> bool {
        tokio::time::timeout(bound, self.task.join_next())
            .await
            .is_err()
    }

    pub(crate) async fn live(&mut self) {
        within(GENEROUS, "a session", self.phase.wait_for(Phase::is_live))
            .await
            .unwrap();
    }
}
