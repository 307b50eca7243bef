//! Programs that people use, through a forward: what they do over plain TCP they do here.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod balanced;
mod git;
mod http;
mod outward;
mod parts;
mod postgres;
mod redis;
mod secrets;
mod ssh;
mod tls;
mod websocket;
mod words;

use tidegate_e2e::{Options, Topology, World};

/// The usual programs with nothing special.
async fn plain() -> World {
    World::start(Topology::PLAINTEXT, Options::new()).await
}

/// The same with TLS on every hop.
async fn tls() -> World {
    World::start(Topology::TLS, Options::new()).await
}
