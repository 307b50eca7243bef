//! Generated code, as `cargo xtask proto` wrote it. Private to this crate.

#[allow(
    clippy::all,
    clippy::or_fun_call,
    clippy::use_self,
    dead_code,
    missing_docs,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]
#[path = "gen/openshell.v1.rs"]
pub(crate) mod openshell;

#[allow(
    clippy::all,
    clippy::or_fun_call,
    clippy::use_self,
    dead_code,
    missing_docs,
    unnameable_types,
    unreachable_pub,
    unused_qualifications,
    reason = "generated"
)]
#[path = "gen/tidegate.v1.rs"]
pub(crate) mod tidegate;

/// Every file of `proto/` and what it imports, streaming methods included.
pub(crate) const DESCRIPTORS: &[u8] = include_bytes!("gen/descriptors.bin");
