//! Parts from which tests are made. Nothing here knows Tidegate's own code: the peers are written
//! from the wire up, so that a mistake in ours is never mirrored by the test.
//!
//! | module | gives a test |
//! |---|---|
//! | [`target`] | TCP programs at the far end: echo, source, sink, resetter, black hole, any script |
//! | [`socket`] | the near end: a TCP client that remembers what it saw and how it ended |
//! | [`fault_proxy`] | a TCP hop that delays, throttles, swallows, cuts and resets on command |
//! | [`raw_h2`] | an HTTP/2 peer that sends whatever it is told, in any order |
//! | [`legacy`] | released clients, supervisors and gateways, which know none of our capabilities |
//! | [`database`] | real databases: a Postgres and an etcd that can be taken away and given back |
//! | [`process`] | real binaries: their output, their signals, their end |
//! | [`probe`] | descriptors, socket states, children and gauges, before and after |
//! | [`certs`] | a private authority and its certificates, good and bad |
//! | [`wait`] | the one place that may sleep |
//!
//! Targets, proxies and legacy daemons run on threads of their own, so they keep going while a
//! test blocks its single-threaded runtime, and they stop when their handle is dropped. They live
//! in real time: do not use them under a paused tokio clock.
//!
//! A wait that runs past its bound panics and says what had been seen until then: in a test that is
//! the answer one wants to read.

mod background;
pub mod certs;
pub mod content;
pub mod database;
pub mod fault_proxy;
pub mod legacy;
pub mod messages;
pub mod outcome;
pub mod probe;
pub mod process;
pub mod raw_h2;
pub mod record;
pub mod socket;
pub mod target;
pub mod wait;
