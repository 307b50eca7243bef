//! Waiting for a condition with a generous bound: the one place in the tests that may sleep.

use std::{
    thread,
    time::{Duration, Instant},
};

/// How long to wait for what must happen, where the test is not about time.
pub const GENEROUS: Duration = Duration::from_secs(30);

/// How often a condition is looked at.
const STEP: Duration = Duration::from_millis(5);

/// The condition did not come true within the bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the condition did not hold within {bound:?}")]
pub struct TimedOut {
    /// How long it was waited for.
    pub bound: Duration,
}

/// Blocks until `condition` holds.
///
/// # Errors
///
/// [`TimedOut`] if it does not within `bound`.
pub fn until(bound: Duration, condition: impl FnMut() -> bool) -> Result<(), TimedOut> {
    until_looking(STEP, bound, condition)
}

/// Blocks until `condition`, which costs something to look at, holds; looks once every `step`.
///
/// # Errors
///
/// [`TimedOut`] if it does not within `bound`.
pub fn until_looking(
    step: Duration,
    bound: Duration,
    mut condition: impl FnMut() -> bool,
) -> Result<(), TimedOut> {
    let deadline = Instant::now() + bound;
    while !condition() {
        if Instant::now() >= deadline {
            return Err(TimedOut { bound });
        }
        thread::sleep(step);
    }
    Ok(())
}

/// Waits until `condition` holds.
///
/// # Errors
///
/// [`TimedOut`] if it does not within `bound`.
///
/// # Cancel safety
///
/// Safe: nothing is lost but the wait.
pub async fn until_async(
    bound: Duration,
    mut condition: impl AsyncFnMut() -> bool,
) -> Result<(), TimedOut> {
    let deadline = Instant::now() + bound;
    while !condition().await {
        if Instant::now() >= deadline {
            return Err(TimedOut { bound });
        }
        tokio::time::sleep(STEP).await;
    }
    Ok(())
}

/// Returns what `future` yields.
///
/// # Panics
///
/// If it yields nothing within `bound`; `what` says what was waited for.
pub async fn within<T>(bound: Duration, what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(bound, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {bound:?} for {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_that_comes_true_is_waited_for() {
        let mut looks = 0;
        let waited = until(GENEROUS, || {
            looks += 1;
            looks == 3
        });
        assert_eq!((waited, looks), (Ok(()), 3));
    }

    #[tokio::test]
    async fn a_condition_that_never_holds_times_out() {
        let bound = Duration::from_millis(20);
        assert_eq!(until(bound, || false), Err(TimedOut { bound }));
        assert_eq!(
            until_async(bound, async || false).await,
            Err(TimedOut { bound })
        );
    }
}
