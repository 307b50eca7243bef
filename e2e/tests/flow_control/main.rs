//! Flow control: a slow reader slows its own sender, nobody else, and costs a bounded amount.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod bounds;
mod cancelling;
mod fairness;
mod floods;
mod line;

use std::time::Duration;

/// How long what must happen soon may take here.
const MOMENT: Duration = Duration::from_secs(10);

const MIB: u64 = 1 << 20;
