//! Asks the gateway after the sandbox: at the start, when something failed, and now and then.

use std::time::Duration;

use tidegate_client::{End, Origin, Phase, Reason};

use super::Forward;
use super::link::Concern;
use crate::failure::Failure;

/// Between two questions: so late is an idle forward told of a loss, or of its end.
const PAUSE: Duration = Duration::from_millis(500);
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

impl Forward {
    /// Whether new connections get through, as the gateway sees it.
    ///
    /// # Errors
    ///
    /// Why they do not.
    pub(super) async fn ask(&self) -> Result<(), End> {
        let asked = self.client.sandbox(&self.sandbox);
        let answer = tokio::time::timeout(PATIENCE, asked).await;
        let sandbox = answer.unwrap_or_else(|_| Err(silent()))?;
        match sandbox.phase {
            // One that does not say lets us find out.
            Phase::Ready | Phase::Unspecified => Ok(()),
            Phase::Provisioning
            | Phase::Error
            | Phase::Deleting
            | Phase::Unknown
            | Phase::Stopping
            | Phase::Stopped
            | Phase::Starting
            | Phase::Completed => Err(self.absent(sandbox.phase)),
        }
    }

    /// Keeps asking, and tells what changes. Resolves when the sandbox is gone and that is to be
    /// the end.
    pub(super) async fn watch(&self, exit_on_loss: bool) -> Failure {
        loop {
            // A failure is looked after at once; else the pause is over.
            let _ = tokio::time::timeout(PAUSE, self.look.notified()).await;
            let Err(end) = self.ask().await else {
                self.reporter.served().await;
                continue;
            };
            if exit_on_loss && Concern::of(end.reason) == Concern::Sandbox {
                return Failure::end(format!("go on forwarding to sandbox {}", self.sandbox), end);
            }
            self.reporter.failed(&end).await;
        }
    }

    fn absent(&self, phase: Phase) -> End {
        let mut message = format!("no supervisor of sandbox {} is connected", self.sandbox);
        if phase != Phase::Unknown {
            let word = phase.as_str().to_ascii_lowercase();
            message.push_str(&format!(" (it is {word})"));
        }
        End::new(Origin::Gateway, Reason::NoSession, message)
    }
}

fn silent() -> End {
    let message = format!("the gateway has not answered for {PATIENCE:?}");
    End::new(Origin::Gateway, Reason::TransportLost, message)
}
