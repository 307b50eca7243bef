//! SIGTERM and SIGINT: the first asks to stop in order, the second insists. SIGHUP asks to read files
//! again.

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Listens for signals as long as it lives.
#[derive(Debug)]
pub struct Signals {
    stop: CancellationToken,
    insist: CancellationToken,
    _listener: JoinSet<()>,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// What the system says when it does not let us.
    pub fn listen() -> std::io::Result<Self> {
        let (stop, insist) = (CancellationToken::new(), CancellationToken::new());
        let mut source = Source::new()?;
        let mut listener = JoinSet::new();
        let tokens = [stop.clone(), insist.clone()];
        listener.spawn(async move {
            for token in tokens {
                let name = source.next().await;
                tracing::info!(signal = name, "told to stop");
                token.cancel();
            }
        });
        Ok(Self {
            stop,
            insist,
            _listener: listener,
        })
    }

    /// Cancelled by the first signal: end in order.
    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Cancelled by the second signal: end at once.
    pub const fn insist(&self) -> &CancellationToken {
        &self.insist
    }
}

/// SIGHUP, which asks to read files again. It ends a process that does not listen for it.
#[derive(Debug)]
pub struct Hangups {
    #[cfg(unix)]
    source: tokio::signal::unix::Signal,
}

impl Hangups {
    /// Begins to listen.
    ///
    /// # Errors
    ///
    /// What the system says when it does not let us.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            source: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    /// Waits for the next one; for ever where there are none.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no signal is lost.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        if self.source.recv().await.is_some() {
            return;
        }
        std::future::pending().await
    }
}

#[cfg(unix)]
struct Source {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Source {
    fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

#[cfg(not(unix))]
struct Source;

#[cfg(not(unix))]
impl Source {
    const fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> &'static str {
        // Without the handler no Ctrl-C ever comes.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        "Ctrl-C"
    }
}
