//! The program `tidegate-supervisor`: flags, logs, signals and an exit code around [`Supervisor`].
//!
//! | exit code | |
//! |---|---|
//! | 0 | told to stop, and did; or the sandbox was removed |
//! | 1 | decided to stop, or was told a second time |
//! | 2 | a flag, the configuration or a file cannot be used |

use std::fmt::Display;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches};
use mimalloc::MiMalloc;
use tidegate_daemon::picks::Settings;
use tidegate_daemon::{Signals, descriptors, logs, systemd};
use tidegate_supervisor::config::Cli;
use tidegate_supervisor::{Config, Phase, Supervisor};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    logs::init(cli.verbose);
    let config = Config::load(cli, &mut Settings::new(&matches)).unwrap_or_else(|e| refuse(e));
    descriptors::raise_limit();
    let supervisor = Supervisor::new(config).unwrap_or_else(|error| refuse(error));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap_or_else(|error| refuse(error));
    let code = runtime.block_on(run(&supervisor));
    // Not by way of dropping everything: a resolver that hangs would be waited for.
    std::process::exit(code);
}

/// Says what cannot be used, and exits.
fn refuse(error: impl Display) -> ! {
    Cli::command()
        .error(ErrorKind::ValueValidation, error)
        .exit()
}

async fn run(supervisor: &Supervisor) -> i32 {
    let signals = Signals::listen().unwrap_or_else(|error| refuse(error));
    let stopped = tokio::select! {
        stopped = supervisor.run(signals.stop().clone()) => stopped,
        () = signals.insist().cancelled() => {
            tracing::warn!("told to stop twice: open streams are cut");
            return 1;
        }
        never = announce(supervisor, &signals) => match never {},
    };
    systemd::stopping();
    match stopped {
        Ok(()) => 0,
        Err(reason) => {
            tracing::error!(%reason, "stopped");
            1
        }
    }
}

/// Tells the service manager of the first session, and of the end.
async fn announce(supervisor: &Supervisor, signals: &Signals) -> std::convert::Infallible {
    let mut phase = supervisor.phase();
    let first = async {
        // The value that is waited for locks the phase: it must not outlive this block.
        phase.wait_for(Phase::is_live).await.is_ok()
    };
    if signals.stop().run_until_cancelled(first).await == Some(true) {
        systemd::ready();
    }
    signals.stop().cancelled().await;
    systemd::stopping();
    std::future::pending().await
}
