//! A whole gateway, asked over the wire by raw and by released peers.

mod admin;
mod bad_input;
mod claims;
mod common;
mod daemon;
mod forward;
mod limits;
mod opening;
mod sessions;
mod shutdown;
mod unary;
