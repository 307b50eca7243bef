//! Real commands, in both scopes.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test's helper may panic, too")]

mod common;

mod background;
mod ending;
mod input;
mod lost;
mod many;
mod nursery;
mod outputs;
mod results;
mod terminal;
