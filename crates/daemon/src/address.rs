//! What to do about an address that cannot be listened on.

use std::io::{self, ErrorKind};

/// Says what to do about an address that the system refused with `error`, where that is plain.
pub fn remedy(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        ErrorKind::AddrInUse => Some(
            "another process listens there: stop it, or name another port (0 takes a free one)",
        ),
        ErrorKind::AddrNotAvailable => Some(
            "this machine has no such address: name one of its own, as 127.0.0.1, or 0.0.0.0 for all",
        ),
        ErrorKind::PermissionDenied => {
            Some("ports below 1024 need a right of their own: name a higher one")
        }
        _ => None,
    }
}
