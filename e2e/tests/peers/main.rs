//! Peers of other ages, and peers that mean no good.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod counters;
mod legacy_client;
mod legacy_gateway;
mod legacy_supervisor;
mod silent;
mod targets;
mod truncation;

use std::time::Duration;

/// How long what must happen soon may take here.
const MOMENT: Duration = Duration::from_secs(10);
