//! Asking a command to end, for a result and not for an error.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Asks a command to end, on behalf of someone other than its caller, who is told how it ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    token: CancellationToken,
    /// There is a command that can be asked.
    listens: AtomicBool,
}

impl Stop {
    /// Asks it. Says whether that was of any use: there is a command, and it was not asked before.
    pub(crate) fn ask(&self) -> bool {
        let listens = self.0.listens.swap(false, Ordering::Relaxed);
        if listens {
            self.0.token.cancel();
        }
        listens
    }

    /// The command runs. Resolves when it is asked to end.
    pub(super) fn listen(&self) -> WaitForCancellationFutureOwned {
        self.0.listens.store(true, Ordering::Relaxed);
        self.0.token.clone().cancelled_owned()
    }
}
