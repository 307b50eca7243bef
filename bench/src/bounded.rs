//! No wait without an end: a process that hangs must fail the bench, not hang it.

use std::fmt::Display;
use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

/// Starting a process, opening a path, one exchange on it.
pub(crate) const SHORT: Duration = Duration::from_secs(30);

/// Moving one sample's bytes, opening thousands of streams.
pub(crate) const LONG: Duration = Duration::from_secs(180);

/// Awaits `work` for at most `limit`; `what` names it in the error.
pub(crate) async fn within<T, E>(
    what: impl Display,
    limit: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T>
where
    Result<T, E>: Context<T, E>,
{
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result.with_context(|| what.to_string()),
        Err(_) => Err(anyhow!("{what}: nothing after {limit:?}")),
    }
}
