//! The program `tidegate` from outside: real processes, real sockets, what scripts and people see.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod connect;
mod copy;
mod dev_and_demo;
mod exec;
#[cfg(all(unix, feature = "daemons"))]
mod failover;
mod forward;
mod house;
mod terminal;
