//! Ctrl-C and SIGTERM.

use crate::failure::Failure;

/// Waits until somebody wants the program to end, and says it as the failure that it is.
///
/// # Cancel safety
///
/// Cancel safe.
pub(crate) async fn told_to_stop() -> Failure {
    match source::next().await {
        Ok(code) => Failure::Stopped(code),
        Err(error) => Failure::io("listen for signals", error),
    }
}

#[cfg(unix)]
mod source {
    use std::io;

    use tokio::signal::unix::{SignalKind, signal};

    pub(super) async fn next() -> io::Result<i32> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            _ = interrupt.recv() => Ok(130),
            _ = terminate.recv() => Ok(143),
        }
    }
}

#[cfg(not(unix))]
mod source {
    pub(super) async fn next() -> std::io::Result<i32> {
        tokio::signal::ctrl_c().await.map(|()| 130)
    }
}
