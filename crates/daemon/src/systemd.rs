//! Readiness for a service manager that waits for it. Without one nothing happens.

use std::sync::Once;

use sd_notify::NotifyState;

/// Says that the daemon does its work.
pub fn ready() {
    notify(NotifyState::Ready);
}

/// Says, once however often it is asked to, that the daemon is ending.
pub fn stopping() {
    static SAID: Once = Once::new();
    SAID.call_once(|| notify(NotifyState::Stopping));
}

/// Says in a few words what the daemon is doing.
pub fn status(text: &str) {
    notify(NotifyState::Status(text));
}

fn notify(state: NotifyState<'_>) {
    #[cfg(unix)]
    if let Err(error) = sd_notify::notify(false, &[state]) {
        tracing::debug!(%error, "the service manager was not told");
    }
    #[cfg(not(unix))]
    let _ = state;
}
