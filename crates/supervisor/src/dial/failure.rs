//! What the kernel's answer to a connection attempt means.

use std::fmt::Display;
use std::io::{self, ErrorKind};

use rustix::io::Errno;
use tidegate_lifecycle::cause::{End, Origin, Reason};

/// The reason behind `error`.
pub(super) fn reason(error: &io::Error) -> Reason {
    let errno = Errno::from_io_error(error);
    match error.kind() {
        _ if errno.is_some_and(is_exhausted) => Reason::LimitResources,
        ErrorKind::ConnectionRefused => Reason::TargetRefused,
        ErrorKind::TimedOut => Reason::DialTimeout,
        _ => Reason::TargetUnreachable,
    }
}

const fn is_exhausted(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::MFILE | Errno::NFILE | Errno::NOBUFS | Errno::NOMEM
    )
}

/// The end of a stream whose connection to `name` failed for `reason`.
pub(super) fn end(reason: Reason, name: &dyn Display, error: &io::Error) -> End {
    let origin = match reason {
        Reason::LimitResources => Origin::Supervisor,
        _ => Origin::Target,
    };
    End::new(origin, reason, format!("cannot connect to {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_answer_has_its_reason() {
        for (errno, expected) in [
            (Errno::CONNREFUSED, Reason::TargetRefused),
            (Errno::TIMEDOUT, Reason::DialTimeout),
            (Errno::HOSTUNREACH, Reason::TargetUnreachable),
            (Errno::NETUNREACH, Reason::TargetUnreachable),
            (Errno::ACCESS, Reason::TargetUnreachable),
            (Errno::MFILE, Reason::LimitResources),
            (Errno::NFILE, Reason::LimitResources),
            // A machine without IPv6 says so of ::1.
            (Errno::ADDRNOTAVAIL, Reason::TargetUnreachable),
        ] {
            assert_eq!(reason(&errno.into()), expected, "{errno:?}");
        }
    }
}
