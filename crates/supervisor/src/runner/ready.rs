//! Files that the runtime watches.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Has the runtime of whoever calls watch a file that does not block.
#[expect(
    deprecated,
    reason = "unsound only for types whose descriptor may change, which an OwnedFd's does not"
)]
pub(super) fn watch(file: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(file, interest)
}

/// Has the runtime of whoever calls watch our end of a pipe or of a terminal.
pub(super) fn watch_end(file: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    rustix::io::ioctl_fionbio(&file, true)?;
    watch(file, interest)
}
