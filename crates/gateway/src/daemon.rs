//! The program `tidegate-gateway`: command line, log, signals, and a gateway in the middle.

use std::ffi::OsString;
use std::io::Write as _;
use std::sync::Arc;

use tidegate_daemon::{Hangups, Signals, descriptors, logs, systemd};
use tidegate_transport::ServerTls;
use tokio::task::JoinSet;

use crate::config::PROGRAM;
use crate::{Config, Gateway};

/// Runs the program with these arguments, the program's name first, until a signal ends it.
///
/// # Errors
///
/// When the gateway cannot start. The message is a sentence for a person.
pub fn main(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<()> {
    let said = PROGRAM.listen(args, |name| std::env::var(name).ok())?;
    if said.print {
        let page = PROGRAM.page(&said.layers)?;
        return Ok(std::io::stdout().write_all(page.as_bytes())?);
    }
    let config = Config::read(&said.layers)?;
    logs::init(said.verbosity);
    descriptors::raise_limit();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime?.block_on(serve(config))
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let signals = Signals::listen()?;
    let gateway = Gateway::bind(config).await?;
    let mut tasks = JoinSet::new();
    if let Some(tls) = gateway.tls() {
        tasks.spawn(reload(tls, Hangups::listen()?));
    }
    systemd::ready();
    let mut running = std::pin::pin!(gateway.run(signals.stop().clone()));
    tokio::select! {
        () = &mut running => {}
        () = signals.stop().cancelled() => {
            systemd::stopping();
            // Who asks twice does not want to wait.
            tokio::select! {
                () = running => {}
                () = signals.insist().cancelled() => {}
            }
        }
    }
    Ok(())
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
