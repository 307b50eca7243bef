//! Real databases for tests: a Postgres and an etcd of one's own, on free ports of the loopback.
//!
//! Each lives in a temporary folder and is gone when its handle is (the Postgres also writes without
//! waiting for the disk). It keeps its port and its data over [`Postgres::kill`] and [`Postgres::restart`], so a
//! test can take the directory away and give it back.

mod etcd;
mod port;
mod postgres;
mod program;

pub use self::{
    etcd::Etcd,
    postgres::Postgres,
    program::{StartError, find},
};
