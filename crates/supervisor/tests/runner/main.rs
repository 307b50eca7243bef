//! Real commands, in both scopes.
#![cfg(target_os = "linux")]

mod common;

mod background;
mod ending;
mod input;
mod lost;
mod many;
mod outputs;
mod results;
mod terminal;
