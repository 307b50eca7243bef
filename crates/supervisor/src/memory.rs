//! The bound on what the process buffers.
//!
//! Window once granted cannot be taken back. So new streams are refused at the limit, and half as
//! much again is as far as the granted windows may carry it: past that the streams that have been
//! stalled longest are ended.

use std::time::Duration;

use tidegate_lifecycle::cause::{End, Origin, Reason};
use tokio::time::{MissedTickBehavior, interval};

use crate::context::Context;

/// How often the sum is looked at.
const EVERY: Duration = Duration::from_millis(250);

/// Watches the sum for as long as it is polled.
pub(crate) async fn watch(context: &Context) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        relieve(context);
    }
}

/// Why a new stream is refused, if the process holds as much as it may.
pub(crate) fn refusal(context: &Context) -> Option<End> {
    (context.buffered.get() >= context.config.max_buffered.bytes()).then(|| {
        let message = "the supervisor buffers as much as it may: try again when other streams have \
                       been read";
        End::new(Origin::Supervisor, Reason::LimitMemory, message)
    })
}

fn relieve(context: &Context) {
    let limit = context.config.max_buffered.bytes();
    let excess = context.buffered.get().saturating_sub(limit + limit / 2);
    if excess == 0 {
        return;
    }
    let per_stream = context.config.stream_window.bytes();
    for handle in context
        .streams
        .stalled_longest(excess.div_ceil(per_stream.max(1)))
    {
        let message = "the supervisor buffers too much, and this stream has been stalled longest";
        handle.close(End::new(Origin::Supervisor, Reason::LimitMemory, message));
    }
}
