//! Permissions of files: the only module of this folder that asks which system this is.

use std::fs::{File, Metadata, OpenOptions};
use std::io;

/// The bits that are taken over from a sandbox: not those that lend somebody's identity.
#[cfg(unix)]
const PERMISSIONS: u32 = 0o777;

/// Makes a file that is opened next readable by its owner alone.
#[cfg(unix)]
pub(super) fn private(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(0o600);
}

#[cfg(not(unix))]
pub(super) const fn private(_options: &mut OpenOptions) {}

/// Gives a file or a folder its permissions.
#[cfg(unix)]
pub(super) fn set(file: &File, mode: u32) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(mode & PERMISSIONS))
}

#[cfg(not(unix))]
pub(super) const fn set(_file: &File, _mode: u32) -> io::Result<()> {
    Ok(())
}

/// The permissions of a file or a folder here.
#[cfg(unix)]
pub(super) fn of(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o7777
}

#[cfg(not(unix))]
pub(super) fn of(metadata: &Metadata) -> u32 {
    if metadata.is_dir() { 0o755 } else { 0o644 }
}
