//! What a process holds: descriptors, sockets by state, children, memory, gauges. Read from `/proc`
//! and `/metrics`, compared with a baseline.

mod baseline;
mod metrics;
mod proc;
mod sockets;

pub use self::{
    baseline::{Baseline, Leak},
    metrics::{Metrics, ScrapeError, get, scrape},
    proc::{descendants, descriptors, is_alive, resident_memory},
    sockets::{Entry, SocketState, open_sockets, sockets_of_port},
};
