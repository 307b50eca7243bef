//! The program `tidegate-gateway`: command line, log, signals, and a gateway in the middle.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Arc;

use clap::ArgMatches;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tidegate_transport::ServerTls;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use crate::config::{Layers, command};
use crate::{Config, Gateway};

/// Runs the program with these arguments, the program's name first, until a signal ends it.
///
/// # Errors
///
/// When the gateway cannot start. The message is a sentence for a person.
pub fn main(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<()> {
    let flags = command().get_matches_from(args);
    let layers = Layers::gather(&flags, |name| std::env::var(name).ok())?;
    let config = Config::read(&layers)?;
    if flags.get_flag("print-config") {
        let page = config.print(&layers);
        return Ok(std::io::stdout().write_all(page.as_bytes())?);
    }
    log(&flags);
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime?.block_on(serve(config))
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let mut stop = Stop::new()?;
    let gateway = Gateway::bind(config).await?;
    let shutdown = CancellationToken::new();
    let mut tasks = JoinSet::new();
    if let Some(tls) = gateway.tls() {
        let hangups = signal(SignalKind::hangup())?;
        tasks.spawn(reload(tls, hangups));
    }
    notify(sd_notify::NotifyState::Ready);
    let mut running = std::pin::pin!(gateway.run(shutdown.clone()));
    tokio::select! {
        () = &mut running => {}
        () = stop.asked() => {
            notify(sd_notify::NotifyState::Stopping);
            shutdown.cancel();
            // Who asks twice does not want to wait.
            tokio::select! {
                () = running => {}
                () = stop.asked() => {}
            }
        }
    }
    Ok(())
}

/// Reads certificates again whenever the process is told to.
async fn reload(tls: Arc<ServerTls>, mut hangups: Signal) {
    while hangups.recv().await.is_some() {
        match tls.reload() {
            Ok(()) => tracing::info!("TLS certificates were read again"),
            Err(error) => {
                tracing::warn!(%error, "TLS certificates cannot be used, the old ones stay")
            }
        }
    }
}

/// The signals that end the program.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> std::io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self {
            terminate,
            interrupt,
        })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn log(flags: &ArgMatches) {
    let own = match flags.get_count("verbose") {
        0 => "info",
        1 => "debug",
        _ => "trace",
    };
    let level =
        format!("info,tidegate_gateway={own},tidegate_bridge={own},tidegate_transport={own}");
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // Fails where a subscriber is set already, which then does the work.
    let _ = subscriber.try_init();
}

/// A connection needs a descriptor, and the usual soft limit is for programs of another kind.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if setrlimit(Resource::Nofile, raised).is_err() {
        tracing::debug!("the limit of open files stays as it is");
    }
}

/// Tells the service manager, where there is one.
fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(false, &[state]) {
        tracing::debug!(%error, "the service manager cannot be told");
    }
}
