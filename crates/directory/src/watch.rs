//! Waking those who wait for news of one sandbox, and nobody else.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_lifecycle::id::SandboxName;
use tokio::sync::watch;

type Bells = HashMap<SandboxName, watch::Sender<()>>;

/// Those who wait, by sandbox. Holds nothing for a name that nobody waits for.
#[derive(Clone, Debug, Default)]
pub struct Watchers(Arc<Mutex<Bells>>);

/// Waits for news of one sandbox.
#[derive(Debug)]
pub struct Watch {
    sandbox: SandboxName,
    news: watch::Receiver<()>,
    watchers: Watchers,
}

impl Watchers {
    /// Begins to wait: every [`Watchers::wake`] from here on is noticed.
    pub fn watch(&self, sandbox: &SandboxName) -> Watch {
        let mut bells = self.lock();
        let bell = bells
            .entry(sandbox.clone())
            .or_insert_with(|| watch::Sender::new(()));
        Watch {
            sandbox: sandbox.clone(),
            news: bell.subscribe(),
            watchers: self.clone(),
        }
    }

    /// Tells those who wait for the sandbox that something happened.
    pub fn wake(&self, sandbox: &SandboxName) {
        if let Some(bell) = self.lock().get(sandbox) {
            bell.send_replace(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Bells> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Resolves when something has happened since the last call, or since the watch began.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: what happened stays noticed.
    pub async fn changed(&mut self) {
        if self.news.changed().await.is_err() {
            // The sender lives in the map as long as this watch does.
            std::future::pending().await
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Entry::Occupied(bell) = self.watchers.lock().entry(self.sandbox.clone())
            && bell.get().receiver_count() <= 1
        {
            bell.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn news_wakes_its_own_watchers_and_leaves_nothing_behind() {
        let watchers = Watchers::default();
        let [a, b] = ["a", "b"].map(|name| SandboxName::parse(name).unwrap());
        let (mut first, mut second, mut other) =
            (watchers.watch(&a), watchers.watch(&a), watchers.watch(&b));
        watchers.wake(&a);
        first.changed().await;
        second.changed().await;
        tokio::select! {
            biased;
            () = other.changed() => panic!("it concerns another sandbox"),
            () = std::future::ready(()) => {}
        }
        drop((first, second, other));
        assert!(watchers.lock().is_empty());
    }
}
