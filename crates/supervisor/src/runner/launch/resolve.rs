//! Which file a program's name means, and why a file cannot be executed.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use rustix::fs::{Access, access};

use super::failure::{Failure, Stage};

/// Where programs are looked for if the environment does not say.
pub(in crate::runner) const DEFAULT_PATH: &str =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Finds the file of `program`, as a shell would: by its path if it has one, else in `path`.
pub(super) fn resolve(program: &str, path: &str) -> Result<PathBuf, Failure> {
    if program.contains('/') {
        return Ok(PathBuf::from(program));
    }
    let mut denied = None;
    for directory in path.split(':') {
        let directory = if directory.is_empty() { "." } else { directory };
        let file = Path::new(directory).join(program);
        match look(&file) {
            Ok(true) => return Ok(file),
            Ok(false) => denied = Some(Errno::EACCES),
            Err(_) => {}
        }
    }
    Err(denied.map_or_else(
        || Failure::new(Stage::Missing, Errno::ENOENT as i32),
        |errno| Failure::new(Stage::NotExecutable, errno as i32),
    ))
}

/// Whether an ordinary file can be executed; an error if there is no such file.
fn look(file: &Path) -> io::Result<bool> {
    let metadata = fs::metadata(file)?;
    if !metadata.is_file() {
        return Err(io::ErrorKind::NotFound.into());
    }
    // For root, access(2) and execve(2) agree: one execute bit is needed.
    Ok(metadata.permissions().mode() & 0o111 != 0 && access(file, Access::EXEC_OK).is_ok())
}

/// What it means that `execve` of `file` failed.
pub(super) fn explain(file: &Path, errno: Errno) -> Failure {
    let stage = match errno {
        Errno::ENOENT if file.exists() => Stage::Interpreter,
        Errno::ENOENT | Errno::ENOTDIR => Stage::Missing,
        Errno::EACCES | Errno::ENOEXEC | Errno::EPERM | Errno::EISDIR => Stage::NotExecutable,
        _ => Stage::Execute,
    };
    Failure::new(stage, errno as i32)
}
