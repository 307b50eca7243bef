//! What a directory on etcd stands on: a client of the few calls it makes.
//!
//! Who owns a sandbox is decided elsewhere; here are keys, conditions, leases and the log of changes.

mod client;
mod endpoints;
mod lease;
mod proto;
mod store;
mod tail;

pub use self::{
    client::{Client, Credentials},
    endpoints::{Endpoints, EndpointsError},
    lease::LeaseId,
    store::{Change, Condition, Entry, Revision, Snapshot},
    tail::{Tail, TailError, Tidings},
};
