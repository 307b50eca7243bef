//! Ctrl-C, SIGTERM, and what else a terminal or its owner says.

use crate::failure::Failure;

/// What a program is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), expect(dead_code, reason = "Ctrl-C is all there is"))]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-\.
    Quit,
    /// SIGTERM.
    Terminate,
    /// The terminal is gone.
    Hangup,
    /// The terminal has another size.
    Resized,
    /// The program goes on after it was stopped.
    Continued,
}

/// Every signal that [`Signal`] knows, from now on.
pub(crate) struct Signals(source::Signals);

impl Signals {
    /// Begins to listen: from now on no signal ends the process by itself.
    ///
    /// # Errors
    ///
    /// When the system does not let it.
    pub(crate) fn listen() -> Result<Self, Failure> {
        let signals = source::Signals::listen();
        signals
            .map(Self)
            .map_err(|error| Failure::io("listen for signals", error))
    }

    /// The next one.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn next(&mut self) -> Signal {
        self.0.next().await
    }
}

/// Waits until somebody wants the program to end, and says it as the failure that it is.
///
/// # Cancel safety
///
/// Cancel safe.
pub(crate) async fn told_to_stop() -> Failure {
    match source::stop().await {
        Ok(code) => Failure::Stopped(code),
        Err(error) => Failure::io("listen for signals", error),
    }
}

#[cfg(unix)]
mod source {
    use std::io;

    use tokio::signal::unix::{self, SignalKind, signal};

    use super::Signal;

    pub(super) struct Signals {
        interrupt: unix::Signal,
        quit: unix::Signal,
        terminate: unix::Signal,
        hangup: unix::Signal,
        resized: unix::Signal,
        continued: unix::Signal,
    }

    impl Signals {
        pub(super) fn listen() -> io::Result<Self> {
            let continued = rustix::process::Signal::CONT.as_raw();
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                quit: signal(SignalKind::quit())?,
                terminate: signal(SignalKind::terminate())?,
                hangup: signal(SignalKind::hangup())?,
                resized: signal(SignalKind::window_change())?,
                continued: signal(SignalKind::from_raw(continued))?,
            })
        }

        pub(super) async fn next(&mut self) -> Signal {
            tokio::select! {
                _ = self.interrupt.recv() => Signal::Interrupt,
                _ = self.quit.recv() => Signal::Quit,
                _ = self.terminate.recv() => Signal::Terminate,
                _ = self.hangup.recv() => Signal::Hangup,
                _ = self.resized.recv() => Signal::Resized,
                _ = self.continued.recv() => Signal::Continued,
            }
        }
    }

    pub(super) async fn stop() -> io::Result<i32> {
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
    use std::io;

    use super::Signal;

    pub(super) struct Signals(());

    impl Signals {
        pub(super) const fn listen() -> io::Result<Self> {
            Ok(Self(()))
        }

        pub(super) async fn next(&mut self) -> Signal {
            match tokio::signal::ctrl_c().await {
                Ok(()) => Signal::Interrupt,
                Err(_) => std::future::pending().await,
            }
        }
    }

    pub(super) async fn stop() -> io::Result<i32> {
        tokio::signal::ctrl_c().await.map(|()| 130)
    }
}
