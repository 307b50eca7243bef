//! Forwarding: every way in which other tools have been seen to lose bytes, ends or connections.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod endings;
mod half_close;
mod opening;
mod silence;
mod vanishing;

/// The first wait of a human being.
const MOMENT: std::time::Duration = std::time::Duration::from_secs(10);
