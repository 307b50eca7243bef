//! The transport against raw HTTP/2 peers, itself, proxies and tonic. One binary: linking is slow.

#![allow(clippy::unwrap_used, reason = "tests, and what they share")]

mod common;
mod endings;
mod lane;
mod limits;
mod proxy;
mod tls;
mod unary;
