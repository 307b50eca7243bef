//! etcd's messages, generated from `proto/` of this crate by `cargo xtask proto`.
//!
//! The generated modules name each other by their package, hence the nesting.

#[allow(
    missing_docs,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    reason = "a program wrote it"
)]
#[path = "gen/etcdserverpb.rs"]
pub(super) mod etcdserverpb;

#[allow(
    missing_docs,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    clippy::all,
    reason = "a program wrote it"
)]
#[path = "gen/mvccpb.rs"]
pub(super) mod mvccpb;
