//! A request for a relay on its way to a session's task, and the verdict on its way back.

use tidegate_bridge::Handle;
use tidegate_lifecycle::End;
use tidegate_lifecycle::relay::{Rank, Side};
use tidegate_lifecycle::session::RelayOpen;
use tidegate_lifecycle::{Origin, Reason};
use tokio::sync::oneshot;

/// A relay that someone wants opened. Dropped without a word, it says that another session is the one
/// to ask.
#[derive(Debug)]
pub(crate) struct Wish {
    pub(super) open: RelayOpen,
    pub(super) opener: Opener,
}

/// Whoever wants the relay: first the one who opens its path, then the stream itself.
#[derive(Debug)]
pub(super) struct Opener {
    verdict: oneshot::Sender<End>,
    stream: Handle,
}

/// Hears what speaks against a relay while its path is opened.
#[derive(Debug)]
pub(crate) struct Verdict(oneshot::Receiver<End>);

impl Wish {
    /// Wishes for `open`, for the stream behind `stream`.
    pub(crate) fn new(open: RelayOpen, stream: Handle) -> (Self, Verdict) {
        let (sender, verdict) = oneshot::channel();
        let opener = Opener {
            verdict: sender,
            stream,
        };
        (Self { open, opener }, Verdict(verdict))
    }

    /// Whether nobody wants it any more.
    pub(super) fn is_moot(&self) -> bool {
        self.opener.verdict.is_closed()
    }
}

impl Opener {
    /// The supervisor ended the relay, or is gone.
    pub(super) fn told(self, end: End) {
        let Self { verdict, stream } = self;
        if let Err(end) = verdict.send(end) {
            stream.told(Side::Upstream, Rank::Typed, end);
        }
    }

    /// This gateway ends the relay.
    pub(super) fn close(self, end: End) {
        let Self { verdict, stream } = self;
        if let Err(end) = verdict.send(end) {
            stream.close(end);
        }
    }
}

impl Verdict {
    /// Resolves with what speaks against the relay.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub(crate) async fn fallen(&mut self) -> End {
        (&mut self.0).await.unwrap_or_else(|_| {
            let message = "the session was over before its supervisor was asked for the relay";
            End::new(Origin::Gateway, Reason::StaleSession, message)
        })
    }

    /// Hears no more: from here on the stream itself is told. What was said already is returned.
    pub(crate) fn close(mut self) -> Option<End> {
        self.0.close();
        self.0.try_recv().ok()
    }
}
