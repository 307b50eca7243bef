//! Who has a session with which sandbox, and which sandboxes are known at all.
//!
//! A directory answers for all gateways that share it; each has a seat, which is a [`Directory`].
//! Ownership is decided there and nowhere else: [`Directory::claim`] hands out a
//! [`Generation`](tidegate_lifecycle::id::Generation) that grows with every change, and whoever acts for
//! a session later says which one it was, so that a late goodbye never touches a successor. The rule
//! itself is [`lifecycle::ownership`](tidegate_lifecycle::ownership); an engine keeps what it says.
//!
//! [`Memory`] is the engine of the gateways of one process. It forgets with it, which is why it takes
//! every name for known during a grace period after its start: supervisors come back, and an open
//! waits for them.
//!
//! [`etcd`] is what an engine for several processes will stand on, and no engine yet.
//!
//! What this crate must not do: carry bytes, or decide what a lost session means for its streams.

mod api;
pub mod etcd;
mod inbox;
mod memory;
mod record;
mod watch;

pub use api::{
    Claim, Claimed, Directory, DirectoryError, Event, Home, Incarnation, Knowledge, Replica,
    SandboxEntry,
};
pub use memory::{Memory, MemorySeat, MemorySettings};
pub use watch::{Watch, Watchers};
