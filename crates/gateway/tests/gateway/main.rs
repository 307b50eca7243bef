//! A whole gateway, asked over the wire by raw and by released peers.
#![allow(clippy::unwrap_used, reason = "in a test, a panic is the answer")]

mod admin;
mod bad_input;
mod claims;
mod common;
mod daemon;
mod documents;
mod drain;
mod exec;
mod forward;
mod limits;
mod memory;
mod opening;
mod peers;
mod sessions;
mod shutdown;
mod slow_directory;
mod tls;
mod unary;
