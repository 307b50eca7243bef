//! The program `tidegate-supervisor`: flags, logs, signals and an exit code around [`Supervisor`].
//!
//! | exit code | |
//! |---|---|
//! | 0 | told to stop, and did; or the sandbox was removed |
//! | 1 | the machine does not let it start; decided to stop, or was told a second time |
//! | 2 | a flag, the configuration or a file that it names cannot be used |

use std::io::Write as _;

use mimalloc::MiMalloc;
use tidegate_daemon::settings::Layers;
use tidegate_daemon::{Signals, address, descriptors, logs, systemd};
use tidegate_supervisor::config::PROGRAM;
use tidegate_supervisor::{Config, Phase, StartError, StopReason, Supervisor};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    #[cfg(target_os = "linux")]
    tidegate_supervisor::runner::enter();
    let said = PROGRAM.listen(std::env::args_os(), |name| std::env::var(name).ok());
    let said = said.unwrap_or_else(|error| PROGRAM.refuse(error));
    if said.print {
        print(&said.layers);
        return;
    }
    let config = Config::read(&said.layers).unwrap_or_else(|error| PROGRAM.refuse(error));
    logs::init(said.verbosity);
    descriptors::raise_limit();
    let supervisor = Supervisor::new(config).unwrap_or_else(|error| match error {
        StartError::Threads(_) => PROGRAM.fail(error),
        error => PROGRAM.refuse(error),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap_or_else(|error| PROGRAM.fail(error));
    let code = runtime.block_on(run(&supervisor));
    // Not by way of dropping everything: a resolver that hangs would be waited for.
    std::process::exit(code);
}

/// Writes the whole configuration to stdout.
fn print(layers: &Layers) {
    let page = PROGRAM.page(layers);
    let page = page.unwrap_or_else(|error| PROGRAM.refuse(error));
    let written = std::io::stdout().write_all(page.as_bytes());
    written.unwrap_or_else(|error| PROGRAM.fail(error));
}

async fn run(supervisor: &Supervisor) -> i32 {
    let signals = Signals::listen().unwrap_or_else(|error| PROGRAM.fail(error));
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
            let remedy = match &reason {
                StopReason::Admin { source, .. } => address::remedy(source),
                _ => None,
            };
            tracing::error!(%reason, remedy, "stopped");
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
