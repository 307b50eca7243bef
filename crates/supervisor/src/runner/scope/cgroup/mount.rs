//! Where the cgroup of this process is in the file system.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The directory of this process's own cgroup, wherever version 2 is mounted.
pub(super) fn own() -> io::Result<PathBuf> {
    let cgroups = fs::read_to_string("/proc/self/cgroup")?;
    let mounts = fs::read("/proc/self/mountinfo")?;
    find(&cgroups, &mounts).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::Unsupported,
            "no cgroup2 file system shows the cgroup of this process",
        )
    })
}

fn find(cgroups: &str, mounts: &[u8]) -> Option<PathBuf> {
    let own = cgroups.lines().find_map(|line| line.strip_prefix("0::"))?;
    mounts.split(|byte| *byte == b'\n').find_map(|line| {
        let (root, point) = cgroup2(line)?;
        // A mount need not begin at the root of the hierarchy.
        let below = Path::new(own).strip_prefix(root).ok()?;
        let climbs = below.components().any(|it| it.as_os_str() == "..");
        (!climbs).then(|| point.join(below))
    })
}

/// The root and the mount point of a line that is about version 2.
fn cgroup2(line: &[u8]) -> Option<(PathBuf, PathBuf)> {
    let fields: Vec<_> = line.split(|byte| *byte == b' ').collect();
    let separator = fields.iter().position(|field| *field == b"-")?;
    if *fields.get(separator + 1)? != b"cgroup2" {
        return None;
    }
    Some((path(fields.get(3)?), path(fields.get(4)?)))
}

/// A path in which `\040` and the like stand for white space and backslashes.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = rest.get(1..4).filter(|_| byte == b'\\');
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        let escaped = escaped.and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &rest[4..] } else { after };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(own: &str, mounts: &str, expected: Option<&str>) {
        let found = find(own, mounts.as_bytes());
        assert_eq!(found.as_deref(), expected.map(Path::new));
    }

    #[test]
    fn version_2_is_found_wherever_it_is() {
        let v1 = "40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n";
        let pure = "30 23 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
        let hybrid = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";
        check("0::/a/b\n", pure, Some("/sys/fs/cgroup/a/b"));
        let both = format!("{v1}{hybrid}");
        check(
            "9:name=systemd:/\n0::/\n",
            &both,
            Some("/sys/fs/cgroup/unified/"),
        );
        check("0::/\n", v1, None);
        check("9:name=systemd:/\n", hybrid, None);
    }

    #[test]
    fn a_part_of_the_hierarchy_may_be_mounted() {
        let part = "30 23 0:26 /a /my\\040groups rw - cgroup2 none rw\n";
        check("0::/a/b", part, Some("/my groups/b"));
        check("0::/c", part, None);
        let outside = "30 23 0:26 / /cg rw - cgroup2 none rw\n";
        check("0::/../x", outside, None);
    }
}
