//! A thread with a runtime of its own, for the parts that must keep going whatever the test does.

use std::{io, thread};

use tokio_util::sync::CancellationToken;

/// A single-threaded runtime on its own thread; everything on it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    stop: CancellationToken,
    thread: Option<thread::JoinHandle<()>>,
}

impl Background {
    /// Runs the future that `main` makes until it ends or this handle is dropped.
    ///
    /// `main` is called inside the runtime, so it may register sockets.
    pub(crate) fn start<M, F>(name: &str, main: M) -> io::Result<Self>
    where
        M: FnOnce() -> F + Send + 'static,
        F: Future<Output = ()>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = stopped.cancelled() => {}
                        () = async { main().await } => {}
                    }
                });
            })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop.cancel();
        let panicked = self
            .thread
            .take()
            .is_some_and(|thread| thread.join().is_err());
        if panicked && !thread::panicking() {
            panic!("a background part of the test kit panicked; its message is above");
        }
    }
}
