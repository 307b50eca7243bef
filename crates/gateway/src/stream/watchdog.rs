//! What is done when slow readers make this process hold more than it may.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use tidegate_lifecycle::{End, Origin, Reason};
use tokio::time::{MissedTickBehavior, interval};

use super::registry::Entry;
use crate::state::State;

/// How often the sum is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// One in so many of the stalled streams is ended at a time, so that a few are enough where a few
/// are to blame.
const SHARE: usize = 16;

/// Ends the streams that have been stalled longest while more than 1.5 × the limit is held: window
/// once granted cannot be taken back. Runs for ever.
pub(crate) async fn watch_memory(state: Arc<State>) {
    let limit = state.config.max_buffered.bytes();
    let alarm = limit.saturating_add(limit / 2);
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let held = state.buffered.get();
        if held > alarm {
            relieve(&state, held);
        }
    }
}

fn relieve(state: &State, held: usize) {
    let mut stalled: Vec<(Duration, Arc<Entry>)> = state
        .streams
        .all()
        .into_iter()
        .filter_map(|entry| Some((entry.progress().stalled?, entry)))
        .collect();
    stalled.sort_by_key(|(since, _)| Reverse(*since));
    let count = stalled.len().div_ceil(SHARE);
    tracing::warn!(
        held,
        count,
        "too much is held for slow readers, ending the most stalled"
    );
    for (since, entry) in stalled.into_iter().take(count) {
        let message = format!(
            "this gateway held {held} bytes for slow readers, and this stream's has taken nothing \
             for {since:.1?}"
        );
        entry
            .handle
            .close(End::new(Origin::Gateway, Reason::LimitMemory, message));
    }
}
