//! The commands of a sandbox, as streams of a gateway.
//!
//! ```text
//!  gateway ◀── ExecEnd ── Tunnel ── pipe ── Job ── Runner ──▶ processes
//! ```
//!
//! A request for one reserves a stream and nothing else. What to run comes on the stream itself, as
//! its first message: from there on a [`Job`](job::Job) has it. Processes are known to the runner
//! alone, protocol to the tunnel alone; the job hands over.

#[cfg(target_os = "linux")]
mod failure;
#[cfg(target_os = "linux")]
mod job;
#[cfg(target_os = "linux")]
mod pump;
mod stop;

use std::io;

use tidegate_lifecycle::{Capabilities, Capability};

pub(crate) use self::stop::Stop;

use crate::Config;
use crate::config::ExecScope;
#[cfg(target_os = "linux")]
use crate::runner::{Runner, RunnerConfig};

/// Runs the commands that streams ask for. Clones share everything.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug)]
pub(crate) struct Commands(Runner);

/// Nobody: commands are run where processes can be held together.
#[cfg(not(target_os = "linux"))]
#[derive(Clone, Debug)]
pub(crate) enum Commands {}

impl Commands {
    /// Gets ready for commands, unless they are switched off or this program cannot run any.
    ///
    /// # Errors
    ///
    /// When the way that was asked for does not work here.
    pub(crate) fn new(config: &Config) -> io::Result<Option<Self>> {
        match config.exec_scope {
            ExecScope::Off => Ok(None),
            ExecScope::Auto => Ok(Self::with(config).unwrap_or_else(|error| {
                // Not by default: a program that embeds a supervisor has no door for them.
                tracing::debug!(%error, "no commands are run");
                None
            })),
            ExecScope::Cgroup | ExecScope::Reaper => Self::with(config),
        }
    }

    #[cfg(target_os = "linux")]
    fn with(config: &Config) -> io::Result<Option<Self>> {
        let runner = Runner::new(RunnerConfig {
            scope: config.exec_scope.scope(),
            base_environment: config.environment(),
            kill_grace: config.scaled(config.kill_grace),
            exec_limit: config.exec_limit,
            ..RunnerConfig::default()
        })?;
        tracing::debug!(scope = runner.scope().as_str(), "commands are run");
        Ok(Some(Self(runner)))
    }

    #[cfg(not(target_os = "linux"))]
    fn with(_config: &Config) -> io::Result<Option<Self>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// How many run.
    pub(crate) fn running(&self) -> usize {
        #[cfg(target_os = "linux")]
        return self.0.running();
        #[cfg(not(target_os = "linux"))]
        match *self {}
    }

    /// Ends all of them, with their descendants, and starts no more.
    pub(crate) async fn stop_all(&self) {
        #[cfg(target_os = "linux")]
        self.0.stop_all().await;
        #[cfg(not(target_os = "linux"))]
        match *self {}
    }
}

/// What a supervisor offers its gateway.
pub(crate) fn offered(commands: Option<&Commands>) -> Capabilities {
    let of_commands = |one: &Capability| match one {
        Capability::ExecRelay | Capability::ExecResult | Capability::ExecTree => true,
        Capability::StreamHalfClose
        | Capability::StreamExplicitFin
        | Capability::RelayAbort
        | Capability::FrameLimit
        | Capability::SessionLiveness
        | Capability::SessionDrain => false,
    };
    match commands {
        Some(_) => Capabilities::SESSION,
        None => Capabilities::of(Capabilities::SESSION.iter().filter(|one| !of_commands(one))),
    }
}
