//! What all commands of a runner share.

use std::io;
use std::sync::{Arc, OnceLock};

use tidegate_lifecycle::exec::KillScope;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::child::Children;
use super::config::{RunnerConfig, Scope};
use super::door;
use super::nursery::Nursery;
use super::output::Drains;
use super::scope::cgroup::Home;
use super::scope::watcher::Watcher;

/// How the descendants of commands are found.
#[derive(Debug)]
pub(super) enum Means {
    /// In cgroups.
    Cgroups {
        /// Where those are.
        home: Arc<Home>,
        /// Who ends them if we are killed.
        watcher: Arc<Watcher>,
    },
    /// By reapers.
    Reapers,
}

/// What all commands of a runner share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) config: RunnerConfig,
    pub(super) means: Means,
    pub(super) nursery: Nursery,
    pub(super) children: Children,
    pub(super) drains: Drains,
    /// One for each command that may run.
    pub(super) places: Arc<Semaphore>,
    /// One for each command, until its tree is done with.
    pub(super) minders: TaskTracker,
    pub(super) stop: CancellationToken,
    /// Orphans are being reaped.
    pub(super) adopts: OnceLock<()>,
}

impl Inner {
    pub(super) fn new(config: RunnerConfig) -> io::Result<Self> {
        let binary = door::binary(config.binary.as_deref())?;
        let children = Children::default();
        let cgroups = || {
            let home = Home::find(&binary, &children)?;
            let watcher = Watcher::new(binary.clone(), home.path(), children.clone());
            io::Result::Ok(Means::Cgroups {
                home: Arc::new(home),
                watcher: Arc::new(watcher),
            })
        };
        let means = match config.scope {
            Scope::Reaper => Means::Reapers,
            Scope::Cgroup => cgroups()?,
            Scope::Auto => cgroups().unwrap_or_else(|error| {
                tracing::debug!(%error, "commands run under reapers: cgroups cannot be used");
                Means::Reapers
            }),
        };
        Ok(Self {
            drains: Drains::new(config.held_pipes),
            places: Arc::new(Semaphore::new(config.exec_limit)),
            minders: TaskTracker::new(),
            stop: CancellationToken::new(),
            adopts: OnceLock::new(),
            config,
            means,
            nursery: Nursery::new(binary, children.clone()),
            children,
        })
    }

    pub(super) const fn scope(&self) -> KillScope {
        match self.means {
            Means::Cgroups { .. } => KillScope::Cgroup,
            Means::Reapers => KillScope::Reaper,
        }
    }
}
