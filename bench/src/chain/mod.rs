//! A contender at work: its processes, its target, and the address where it accepts connections.

mod bore;
mod certificates;
mod plain;
mod rathole;
mod site;
mod ssh;
mod tidegate;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use tempfile::TempDir;

use self::site::Site;
use crate::bounded::{SHORT, within};
use crate::load::{Order, Sandbox, open};
use crate::process::{Process, cpu_seconds, own_cpu_seconds};
use crate::programs::Programs;
use crate::subject::{Role, Subject};

/// A running contender with a target of its own. Dropping it ends all its processes.
pub(crate) struct Chain {
    /// Which contender.
    pub(crate) subject: Subject,
    /// Where it accepts connections; several addresses are several tunnels to the same target.
    pub(crate) entries: Vec<SocketAddr>,
    /// Where the target listens.
    pub(crate) target: SocketAddr,
    /// Where the gateway listens, if it has one.
    pub(crate) gateway: Option<SocketAddr>,
    parts: Vec<(Role, Process)>,
    _target: Process,
    home: TempDir,
}

/// What a contender tells when its processes run.
struct Started {
    entries: Vec<SocketAddr>,
    gateway: Option<SocketAddr>,
}

impl Chain {
    /// Starts every process and waits until a stream reaches the target.
    pub(crate) async fn start(subject: Subject, programs: &Programs) -> Result<Self> {
        let (mut site, target) = Site::open(programs).await?;
        let started = launch(subject, &mut site).await;
        let started = started.map_err(|error| anyhow!("{error:#}\n{}", site.last_words()));
        let Started { entries, gateway } = started?;
        let Site {
            home,
            parts,
            target: address,
            ..
        } = site;
        let chain = Self {
            subject,
            entries,
            target: address,
            gateway,
            parts,
            _target: target,
            home,
        };
        for entry in &chain.entries {
            let opened = within(format!("waiting for {subject}"), SHORT, until_open(*entry));
            opened
                .await
                .map_err(|error| anyhow!("{error:#}\n{}", chain.last_words()))?;
        }
        Ok(chain)
    }

    /// Where the `index`th stream goes in.
    pub(crate) fn entry(&self, index: usize) -> SocketAddr {
        self.entries[index % self.entries.len()]
    }

    /// Processor seconds so far of each role.
    pub(crate) fn cpu(&self) -> Result<BTreeMap<Role, f64>> {
        let mut seconds = BTreeMap::new();
        for (role, process) in &self.parts {
            *seconds.entry(*role).or_default() += cpu_seconds(process.pid())?;
        }
        Ok(seconds)
    }

    /// Processor seconds so far of the middle and the exit process, without those of children.
    pub(crate) fn inner_cpu(&self) -> Result<f64> {
        Ok(own_cpu_seconds(self.middle()?)? + own_cpu_seconds(self.exit()?)?)
    }

    /// The process in the middle: the gateway, the second relay, a tunnel's server.
    pub(crate) fn middle(&self) -> Result<u32> {
        self.process(Role::Middle)
    }

    /// The process at the exit: the supervisor, the last relay, a tunnel's client.
    pub(crate) fn exit(&self) -> Result<u32> {
        self.process(Role::Exit)
    }

    fn process(&self, role: Role) -> Result<u32> {
        let found = self.parts.iter().find(|(one, _)| *one == role);
        let (_, process) =
            found.with_context(|| format!("{} has no {} process", self.subject, role.name()))?;
        Ok(process.pid())
    }

    /// The sandbox of a contender with one tunnel, for a client of its own connection.
    pub(crate) fn sandbox(&self) -> Result<Sandbox> {
        let gateway = self.gateway.context("there is no gateway")?;
        let tls = self.subject == Subject::TidegateTls;
        let client = tidegate::client(tls, gateway, self.home.path())?;
        Sandbox::new(client, tidegate::SANDBOX, self.target.port())
    }

    /// The folder with the contender's keys and certificates.
    pub(crate) fn certificates(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    /// What the processes printed last.
    pub(crate) fn last_words(&self) -> String {
        site::last_words(&self.parts)
    }
}

async fn launch(subject: Subject, site: &mut Site<'_>) -> Result<Started> {
    let alone = |entry| Started {
        entries: vec![entry],
        gateway: None,
    };
    match subject {
        Subject::Plain => plain::start(site, false).await.map(alone),
        Subject::Tls => plain::start(site, true).await.map(alone),
        Subject::Tidegate => tidegate::start(site, &tidegate::Setup::PLAINTEXT).await,
        Subject::TidegateTls => tidegate::start(site, &tidegate::Setup::TLS).await,
        Subject::OneThread => tidegate::start(site, &tidegate::Setup::threads(1)).await,
        Subject::TwoThreads => tidegate::start(site, &tidegate::Setup::threads(2)).await,
        Subject::Ssh => ssh::start(site).await.map(alone),
        Subject::Bore => bore::start(site).await.map(alone),
        Subject::Rathole => rathole::start(site).map(alone),
    }
}

/// Tries until a stream reaches the target: several contenders say nothing when they are ready.
async fn until_open(entry: SocketAddr) -> Result<()> {
    while open(entry, Order::Hold).await.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
