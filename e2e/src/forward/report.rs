//! How each connection of a forward has ended.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::watch;

/// How the stream behind a local connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The reason, `FINISHED` for a clean end.
    pub reason: String,
    /// Who ended it; empty for a clean end.
    pub origin: String,
    /// Bytes towards the target.
    pub bytes_up: u64,
    /// Bytes from the target.
    pub bytes_down: u64,
}

impl Closed {
    /// Tells whether both directions finished cleanly.
    pub fn is_finished(&self) -> bool {
        self.reason == "FINISHED"
    }

    /// Fails unless the stream finished cleanly after so many bytes.
    ///
    /// # Panics
    ///
    /// If it did not.
    pub fn assert_finished(&self, bytes_up: u64, bytes_down: u64) {
        let wanted = Self {
            reason: "FINISHED".to_owned(),
            origin: String::new(),
            bytes_up,
            bytes_down,
        };
        assert_eq!(*self, wanted);
    }
}

/// What has ended so far, by the local program's address.
#[derive(Clone, Debug)]
pub(super) struct Reports(watch::Receiver<HashMap<SocketAddr, Closed>>);

/// Where ends are reported.
pub(super) type Reporter = watch::Sender<HashMap<SocketAddr, Closed>>;

impl Reports {
    pub(super) fn new() -> (Reporter, Self) {
        let (reporter, reports) = watch::channel(HashMap::new());
        (reporter, Self(reports))
    }

    pub(super) fn closed_now(&self, peer: SocketAddr) -> Option<Closed> {
        self.0.borrow().get(&peer).cloned()
    }

    pub(super) async fn closed(&self, peer: SocketAddr, bound: Duration) -> Closed {
        let mut reports = self.0.clone();
        let found = reports.wait_for(|closed| closed.contains_key(&peer));
        match tokio::time::timeout(bound, found).await {
            Ok(Ok(closed)) => closed[&peer].clone(),
            Ok(Err(_)) => panic!("the forward ended without a word about {peer}"),
            Err(_) => panic!("the stream of {peer} has not ended within {bound:?}"),
        }
    }
}
