//! The commands that ask once and answer, and `connect`.

pub(crate) mod completions;
pub(crate) mod connect;
pub(crate) mod contexts;
pub(crate) mod manual;
pub(crate) mod sandboxes;
pub(crate) mod sessions;
pub(crate) mod streams;
