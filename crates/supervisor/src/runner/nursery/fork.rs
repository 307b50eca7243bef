//! A fork that says whose the child is, and one that says in which cgroup.

use std::mem;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::libc::{self, c_int, c_long};
use rustix::io::Errno;

/// The kernel's number: `libc` has it in too few bits.
const CLONE_INTO_CGROUP: u64 = 1 << 33;

/// Which of two processes this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runner) enum Forked {
    /// The one that has called; the other has this id.
    Parent(i32),
    /// The one that was made.
    Child,
}

/// Whose child it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::runner) enum Parent {
    /// This process's.
    This,
    /// This process's parent's: the two are siblings.
    Same,
}

/// Makes a copy of this process, which must have one thread.
pub(in crate::runner) fn fork(parent: Parent) -> Result<Forked, Errno> {
    let flags: c_int = match parent {
        Parent::This => libc::SIGCHLD,
        Parent::Same => libc::SIGCHLD | libc::CLONE_PARENT,
    };
    let none: c_long = 0;
    #[expect(unsafe_code, reason = "no library offers a fork that makes a sibling")]
    // SAFETY: no memory is shared, and no stack is given: both return here, each with its own copy
    // of everything. One thread means that no lock is held by somebody who was not copied.
    let id = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), none, none, none, none) };
    returned(id)
}

/// Makes a sibling as [`fork`] does, which is born in `cgroup`.
///
/// An old kernel cannot, and a sandbox may forbid what it cannot look into.
pub(super) fn fork_into(cgroup: &OwnedFd) -> Result<Forked, Errno> {
    #[expect(unsafe_code, reason = "a structure of numbers")]
    // SAFETY: all of its fields may be zero.
    let mut arguments: libc::clone_args = unsafe { mem::zeroed() };
    // Its end is told as ours would be: the kernel wants no signal named for a sibling.
    arguments.flags = u64::from(libc::CLONE_PARENT.cast_unsigned()) | CLONE_INTO_CGROUP;
    arguments.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    let (arguments, size) = (&raw const arguments, size_of::<libc::clone_args>());
    #[expect(unsafe_code, reason = "no library offers a birth in a cgroup")]
    // SAFETY: as for `fork`; the structure outlives the call.
    let id = unsafe { libc::syscall(libc::SYS_clone3, arguments, size) };
    returned(id)
}

fn returned(id: c_long) -> Result<Forked, Errno> {
    match i32::try_from(id) {
        Ok(0) => Ok(Forked::Child),
        Ok(id @ 1..) => Ok(Forked::Parent(id)),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::AGAIN)),
    }
}
