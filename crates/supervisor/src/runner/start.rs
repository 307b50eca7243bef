//! The start of a command: from what was asked for to a tree with somebody who minds it.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use tidegate_lifecycle::exec::{Command, Output};
use tokio::net::UnixStream;
use tokio::net::unix::ReadHalf;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;

use super::error::StartError;
use super::events::Events;
use super::inner::{Inner, Means};
use super::launch::{self, Request};
use super::minder::{Holder, Minder, Terms};
use super::nursery;
use super::output::Source;
use super::progress::Progress;
use super::running::{Control, Running};
use super::scope::{Manner, Step, Tree, cgroup, reaper};
use super::socket;
use super::stdin::Stdin;
use super::streams::{Input, Streams};

/// Signals that may wait to be sent.
const SIGNALS: usize = 64;

/// A command that is being started.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) inner: Arc<Inner>,
    pub(super) command: Command,
    pub(super) input: Input,
    pub(super) place: OwnedSemaphorePermit,
}

/// A launcher that was told what to become.
#[derive(Debug)]
struct Prepared {
    streams: Streams,
    tree: Tree,
    holder: Holder,
    launcher: UnixStream,
    /// Whether it could be told.
    told: io::Result<()>,
    /// Where it shall go.
    workdir: Option<String>,
}

impl Start {
    /// Starts the command, hands it over, and minds it until its tree is done with.
    ///
    /// If nobody waits for it any more, it is ended.
    pub(super) async fn run(self, mut tell: oneshot::Sender<Result<Running, StartError>>) {
        let prepared = match self.prepare().await {
            Err(error) if nursery::has_died(&error) => self.prepare().await,
            prepared => prepared,
        };
        let mut prepared = match prepared {
            Ok(prepared) => prepared,
            Err(error) => {
                let _ = tell.send(Err(StartError::own(&error)));
                return;
            }
        };
        let launched = tokio::select! {
            launched = self.launch(&mut prepared) => launched,
            () = tell.closed() => Err(StartError::Stopping),
            () = self.inner.stop.cancelled() => Err(StartError::Stopping),
        };
        if let Err(error) = launched {
            drop(self.place);
            let _ = tell.send(Err(error));
            return clear_away(prepared.tree, prepared.holder).await;
        }
        let stop = self.inner.stop.clone();
        let (running, minder) = self.hand_over(prepared);
        // Dropped if nobody waits: the minder hears of that.
        let _ = tell.send(Ok(running));
        minder.run(stop).await;
    }

    /// Everything up to a launcher that was told what to become.
    async fn prepare(&self) -> io::Result<Prepared> {
        let (streams, files) = Streams::open(self.command.terminal, self.input)?;
        let (mut launcher, its_end) = socket::pair()?;
        let request = self.request();
        let (mut ours, mut said) = launcher.split();
        let tell = async {
            let lent: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
            launch::tell(&mut said, &request, &lent).await
        };
        // It is told while it comes to be: what is said waits in the socket.
        let (told, planted) = tokio::join!(tell, self.plant(its_end, &mut ours, &streams));
        let (tree, holder) = planted?;
        Ok(Prepared {
            workdir: request.workdir,
            streams,
            tree,
            holder,
            launcher,
            told,
        })
    }

    /// Starts a launcher in a tree of its own.
    async fn plant(
        &self,
        launcher: OwnedFd,
        ours: &mut ReadHalf<'_>,
        streams: &Streams,
    ) -> io::Result<(Tree, Holder)> {
        let Inner { means, nursery, .. } = &*self.inner;
        let input = streams.input.file();
        let input: Option<BorrowedFd<'_>> = input.as_ref().map(|file| file.as_fd());
        let input = input.filter(|_| streams.terminal.is_none());
        match means {
            Means::Cgroups { home, watcher } => {
                let holder = Holder::of(watcher, input)?;
                match cgroup::Tree::start(nursery, home, launcher, ours).await {
                    Ok(tree) => Ok((Tree::Cgroup(tree), holder)),
                    Err(error) => {
                        holder.let_go();
                        Err(error)
                    }
                }
            }
            Means::Reapers => {
                let setup = reaper::Setup {
                    manner: self.manner(),
                    kill_background: self.command.kill_background,
                    input,
                };
                let tree = reaper::Tree::start(nursery, launcher, setup).await?;
                let holder = input.map_or(Holder::Nobody, |_| Holder::Reaper);
                Ok((Tree::Reaper(tree), holder))
            }
        }
    }

    async fn launch(&self, prepared: &mut Prepared) -> Result<(), StartError> {
        let told = std::mem::replace(&mut prepared.told, Ok(()));
        let outcome = match told {
            Ok(()) => launch::outcome(&mut prepared.launcher).await,
            Err(error) => Err(error),
        };
        let workdir = prepared.workdir.as_deref();
        match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(failure)) => Err(StartError::launch(failure, &self.command, workdir)),
            Err(error) => Err(self.unheard(&mut prepared.tree, error).await),
        }
    }

    /// What it means that a launcher has said nothing.
    async fn unheard(&self, tree: &mut Tree, error: io::Error) -> StartError {
        let unstarted = match tree {
            Tree::Cgroup(_) => None,
            Tree::Reaper(tree) => tree.spawn_error().await,
        };
        StartError::own(&unstarted.map_or(error, io::Error::from_raw_os_error))
    }

    fn request(&self) -> Request {
        let command = &self.command;
        let config = &self.inner.config;
        Request {
            argv: command.argv.clone(),
            environment: super::environment::complete(&config.base_environment, command),
            workdir: command.workdir.clone().or_else(|| config.workdir.clone()),
            terminal: command.terminal.is_some(),
            dies_with_parent: matches!(self.inner.means, Means::Reapers),
        }
    }

    fn manner(&self) -> Manner {
        Manner {
            grace: self
                .command
                .kill_grace
                .unwrap_or(self.inner.config.kill_grace),
            hangup: self.command.terminal.is_some(),
        }
    }

    /// The two sides of a command that runs: its caller's, and its minder's.
    fn hand_over(self, prepared: Prepared) -> (Running, Minder) {
        let Prepared {
            streams,
            tree,
            holder,
            ..
        } = prepared;
        let progress = Arc::new(Progress::default());
        let (signals, waiting) = mpsc::channel(SIGNALS);
        let limits = [self.command.stdout_limit, self.command.stderr_limit];
        let outputs = streams.outputs.iter().zip(limits).zip(Output::BOTH);
        let sources = outputs.map(|((pipe, limit), output)| {
            let drains = self.inner.drains.clone();
            let (pipe, progress) = (Arc::clone(pipe), Arc::clone(&progress));
            (
                output,
                Source::new(pipe, limit, drains, Handle::current(), progress),
            )
        });
        let running = Running {
            control: Control {
                scope: tree.scope(),
                terminal: streams.terminal.clone(),
                signals,
                progress: Arc::clone(&progress),
            },
            stdin: Stdin::new(Arc::clone(&streams.input), Arc::clone(&progress)),
            events: Events::new(sources, tree.scope(), Arc::clone(&progress)),
        };
        let minder = Minder {
            tree,
            terms: Terms {
                timeout: self.command.timeout,
                manner: self.manner(),
                kill_background: self.command.kill_background,
            },
            started: Instant::now(),
            signals: waiting,
            terminal: streams.terminal,
            pipes: streams.outputs,
            inlet: streams.input,
            holder,
            progress,
            place: Some(self.place),
        };
        (running, minder)
    }
}

/// Ends a launcher that has not become a command, and all that is with it.
async fn clear_away(mut tree: Tree, holder: Holder) {
    tree.end(Manner::KILL);
    while let Step::Ended(_) = tree.next().await {}
    holder.let_go();
    tree.bury().await;
}
