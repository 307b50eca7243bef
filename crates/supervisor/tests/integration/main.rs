//! The supervisor between a gateway that the test plays and targets of the test.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod common;
mod documents;
#[cfg(target_os = "linux")]
mod exec;
mod homes;
mod legacy;
mod program;
mod relays;
mod session;
