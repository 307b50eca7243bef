//! Who has a session with which sandbox, and which sandboxes are known at all.
//!
//! A [`Directory`] answers for all gateways that share it. Ownership is decided by it and by nothing
//! else: [`Directory::claim`] hands out a [`Generation`](tidegate_lifecycle::id::Generation) that
//! grows with every change, and whoever acts for a session later says which one it was, so that a
//! late goodbye never touches a successor.
//!
//! [`Memory`] is the engine of a single gateway. It forgets with the process, which is why it takes
//! every name for known during a grace period after its start: supervisors come back, and an open
//! waits for them.
//!
//! What this crate must not do: carry bytes, or decide what a lost session means for its streams.

mod api;
pub mod etcd;
mod memory;
mod record;
mod watch;

pub use api::{Claim, Claimed, Directory, DirectoryError, Home, Knowledge, SandboxEntry};
pub use memory::{Memory, MemorySettings};
pub use watch::{Watch, Watchers};
