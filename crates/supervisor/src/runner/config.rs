//! How commands are run.

use std::path::PathBuf;
use std::time::Duration;

use tidegate_lifecycle::exec::CommandLimits;

use super::launch::DEFAULT_PATH;

/// How the descendants of a command are found when it has to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// With cgroups where they can be used, else with reapers.
    #[default]
    Auto,
    /// With a cgroup for each command, or not at all.
    Cgroup,
    /// With a reaper for each command.
    Reaper,
}

/// How commands are run.
#[derive(Clone, Debug)]
pub struct RunnerConfig {
    /// How their descendants are found.
    pub scope: Scope,
    /// The variables of every command, of which it may set others. Nothing else is inherited.
    pub base_environment: Vec<(String, String)>,
    /// Where they start if they do not say; the supervisor's own directory if unset.
    pub workdir: Option<String>,
    /// Between TERM and KILL if they do not say.
    pub kill_grace: Duration,
    /// How many may run at a time.
    pub exec_limit: usize,
    /// How large they may be.
    pub limits: CommandLimits,
    /// How many outputs are read on that outlive their commands.
    pub held_pipes: usize,
    /// The binary that has the runner's door; this process's own if unset, and if its `main` calls
    /// [`enter`](super::enter).
    pub binary: Option<PathBuf>,
}

impl Default for RunnerConfig {
    fn default() -> Self {
        Self {
            scope: Scope::default(),
            base_environment: base_environment(),
            workdir: None,
            kill_grace: Duration::from_secs(2),
            exec_limit: 256,
            limits: CommandLimits::default(),
            held_pipes: 1024,
            binary: None,
        }
    }
}

/// The variables that say where and who one is, and nothing that could be a secret.
fn base_environment() -> Vec<(String, String)> {
    const NAMES: [&str; 9] = [
        "HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER",
    ];
    let default = [("PATH".to_owned(), DEFAULT_PATH.to_owned())];
    let own = NAMES.into_iter().filter_map(|name| {
        let value = std::env::var(name).ok()?;
        Some((name.to_owned(), value))
    });
    default.into_iter().chain(own).collect()
}
