//! Tunnels over real HTTP/2, with an end of ours or a raw one on the other side.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

mod common;
mod fin;
mod one_hop;
mod silence;
mod window;
