//! The program `tidegate-gateway`: command line, log, signals, and a gateway in the middle.

use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tidegate_daemon::{Hangups, Signals, address, descriptors, logs, systemd};
use tidegate_transport::ServerTls;
use tokio::task::JoinSet;

use crate::config::PROGRAM;
use crate::{BindError, Config, Gateway};

/// How long what is open may take to hear why it ends, when the gateway is told to stop twice.
const INSISTED: Duration = Duration::from_millis(500);

/// Runs the program with these arguments, the program's name first, until a signal ends it.
///
/// A gateway that cannot start says why in a sentence and ends the process: with 2 if what was set
/// cannot be used, with 1 if the machine does not let it.
pub fn main(args: impl IntoIterator<Item = OsString>) {
    let said = PROGRAM.listen(args, |name| std::env::var(name).ok());
    let said = said.unwrap_or_else(|error| PROGRAM.refuse(error));
    if said.print {
        let page = PROGRAM.page(&said.layers);
        let page = page.unwrap_or_else(|error| PROGRAM.refuse(error));
        let written = std::io::stdout().write_all(page.as_bytes());
        return written.unwrap_or_else(|error| PROGRAM.fail(error));
    }
    let config = Config::read(&said.layers).unwrap_or_else(|error| PROGRAM.refuse(error));
    logs::init(said.verbosity);
    descriptors::raise_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.unwrap_or_else(|error| PROGRAM.fail(error));
    let served = runtime.block_on(serve(config));
    served.unwrap_or_else(|error| PROGRAM.fail(error));
}

async fn serve(config: Config) -> std::io::Result<()> {
    let signals = Signals::listen()?;
    let bound = Gateway::bind(config).await;
    let gateway = bound.unwrap_or_else(|error| give_up(&error));
    let mut tasks = JoinSet::new();
    if let Some(tls) = gateway.tls() {
        tasks.spawn(reload(tls, Hangups::listen()?));
    }
    systemd::ready();
    // Who asks twice does not want to wait: what is open is told why it ends, and no more.
    let (stop, insist) = (signals.stop().clone(), signals.insist().clone());
    let mut running = std::pin::pin!(gateway.run_and_drain(stop.clone(), insist.clone()));
    tokio::select! {
        () = &mut running => return Ok(()),
        () = stop.cancelled() => systemd::stopping(),
    }
    tokio::select! {
        () = &mut running => return Ok(()),
        () = insist.cancelled() => {}
    }
    if tokio::time::timeout(INSISTED, running).await.is_err() {
        tracing::info!("what has not ended by now is cut");
    }
    Ok(())
}

/// Says why there is no gateway.
fn give_up(error: &BindError) -> ! {
    match error {
        BindError::Config(_) | BindError::Tls(_) => PROGRAM.refuse(error),
        BindError::Listen { source, .. } => match address::remedy(source) {
            Some(remedy) => PROGRAM.fail(format_args!("{error}; {remedy}")),
            None => PROGRAM.fail(error),
        },
        BindError::Threads(_) | BindError::Directory(_) => PROGRAM.fail(error),
    }
}

/// Reads certificates again whenever the process is told to.
async fn reload(tls: Arc<ServerTls>, mut hangups: Hangups) {
    loop {
        hangups.next().await;
        match tls.reload() {
            Ok(()) => tracing::info!("TLS certificates were read again"),
            Err(error) => {
                tracing::warn!(%error, "TLS certificates cannot be used, the old ones stay")
            }
        }
    }
}
