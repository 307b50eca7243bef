//! Out of a tar that a sandbox sends, which is not to be trusted.
//!
//! Everything is written into a folder that is new and nobody else's: no link stands there, and none
//! is made. What would be written elsewhere ends the copy; what is neither a file nor a folder is
//! left out, by name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use tar::{Archive, Entry, EntryType};

use super::modes;

/// What was unpacked.
#[derive(Debug, Default)]
pub(super) struct Unpacked {
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// Folders, by their path below the one that was copied: parents before children.
    pub(super) folders: Vec<Folder>,
    /// What was left out, and why.
    pub(super) left_out: Vec<String>,
    /// Whether a folder was copied, or one file.
    pub(super) is_folder: bool,
}

/// A folder and how it looks when everything is in it.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
    pub(super) modified: SystemTime,
}

/// Unpacks the tar of one file, as `into`, or of a folder's contents, as those of `into`. What comes
/// behind the archive is read and dropped.
///
/// # Errors
///
/// When the tar is broken, would write elsewhere, or cannot be written here.
pub(super) fn unpack(tar: impl Read, into: &Path) -> io::Result<Unpacked> {
    let mut archive = Archive::new(tar);
    let mut unpacked = Unpacked::default();
    for entry in archive.entries()? {
        take(entry?, into, &mut unpacked)?;
    }
    io::copy(&mut archive.into_inner(), &mut io::sink())?;
    Ok(unpacked)
}

fn take(mut entry: Entry<'_, impl Read>, into: &Path, unpacked: &mut Unpacked) -> io::Result<()> {
    let inside = inside(&entry.path()?)?;
    let (mode, modified) = (entry.header().mode()?, modified(&entry)?);
    let is_first = unpacked.files == 0 && !unpacked.is_folder && unpacked.left_out.is_empty();
    match entry.header().entry_type() {
        EntryType::Directory => {
            unpacked.is_folder |= is_first;
            fs::create_dir_all(into.join(&inside)).map_err(|error| at(&inside, error))?;
            unpacked.folders.push(Folder {
                path: inside,
                mode,
                modified,
            });
        }
        EntryType::Regular | EntryType::Continuous => {
            // One file has the name that it gets here; what is in a folder keeps its own.
            let path = if unpacked.is_folder {
                into.join(&inside)
            } else if is_first {
                into.to_owned()
            } else {
                return Err(bad(&inside, "comes behind the one file that was asked for"));
            };
            let written = write(&mut entry, &path, mode, modified);
            unpacked.bytes += written.map_err(|error| at(&inside, error))?;
            unpacked.files += 1;
        }
        EntryType::XGlobalHeader => {}
        other => unpacked
            .left_out
            .push(format!("{} ({})", inside.display(), word(other))),
    }
    Ok(())
}

fn write(entry: &mut impl Read, path: &Path, mode: u32, modified: SystemTime) -> io::Result<u64> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    modes::private(&mut options);
    let mut file = options.open(path)?;
    let bytes = io::copy(entry, &mut file)?;
    finish(&file, mode, modified)?;
    Ok(bytes)
}

fn finish(file: &File, mode: u32, modified: SystemTime) -> io::Result<()> {
    file.set_modified(modified)?;
    modes::set(file, mode)
}

/// The path below the folder that is copied, without any way out of it.
fn inside(path: &Path) -> io::Result<PathBuf> {
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(bad(path, "leads out of what was asked for")),
            Component::RootDir | Component::Prefix(_) => {
                return Err(bad(path, "is an absolute path"));
            }
        }
    }
    Ok(inside)
}

fn modified(entry: &Entry<'_, impl Read>) -> io::Result<SystemTime> {
    let since = Duration::from_secs(entry.header().mtime()?);
    let time = SystemTime::UNIX_EPOCH.checked_add(since);
    Ok(time.unwrap_or(SystemTime::UNIX_EPOCH))
}

const fn word(kind: EntryType) -> &'static str {
    match kind {
        EntryType::Symlink => "a symbolic link",
        EntryType::Link => "another name of a file",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Fifo => "a named pipe",
        EntryType::GNUSparse => "a sparse file",
        _ => "of an unknown kind",
    }
}

fn bad(path: &Path, what: &str) -> io::Error {
    let message = format!(
        "the sandbox sent {:?}, which {what}",
        path.display().to_string()
    );
    io::Error::new(io::ErrorKind::InvalidData, message)
}

fn at(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use tar::{Builder, Header};

    use super::*;

    /// A tar of a folder with these entries behind it.
    fn tar(entries: &[(&str, EntryType, &str)]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        let all = [("./", EntryType::Directory, "")];
        for (path, kind, data) in all.iter().chain(entries) {
            let mut header = Header::new_gnu();
            // As a liar writes it: the builder would refuse.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_entry_type(*kind);
            header.set_mode(0o751);
            header.set_mtime(1_000_000_000);
            header.set_size(data.len() as u64);
            if matches!(kind, EntryType::Symlink | EntryType::Link) {
                header.set_link_name("/etc").unwrap();
            }
            header.set_cksum();
            builder.append(&header, data.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpack_all(
        entries: &[(&str, EntryType, &str)],
    ) -> (tempfile::TempDir, io::Result<Unpacked>) {
        let folder = tempfile::tempdir().unwrap();
        let unpacked = unpack(&tar(entries)[..], &folder.path().join("new"));
        (folder, unpacked)
    }

    #[test]
    fn files_are_what_they_were() {
        let (folder, unpacked) = unpack_all(&[
            ("./a", EntryType::Regular, "hello"),
            ("./b/c", EntryType::Regular, ""),
        ]);
        let unpacked = unpacked.unwrap();
        assert_eq!(
            (unpacked.files, unpacked.bytes, unpacked.is_folder),
            (2, 5, true)
        );
        let file = folder.path().join("new/a");
        assert_eq!(fs::read_to_string(&file).unwrap(), "hello");
        let metadata = fs::metadata(&file).unwrap();
        let since = metadata.modified().unwrap();
        let since = since.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since, Duration::from_secs(1_000_000_000));
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            assert_eq!(metadata.mode() & 0o7777, 0o751);
        }
    }

    #[test]
    fn nothing_is_written_elsewhere() {
        for path in ["/tmp/tidegate-evil", "../evil", "./a/../../evil"] {
            let (folder, unpacked) = unpack_all(&[(path, EntryType::Regular, "x")]);
            let error = unpacked.unwrap_err().to_string();
            assert!(error.contains(path), "{error}");
            assert!(!folder.path().join("evil").exists());
            assert!(!Path::new("/tmp/tidegate-evil").exists());
        }
    }

    #[test]
    fn links_and_devices_are_left_out_by_name() {
        let (folder, unpacked) = unpack_all(&[
            ("./way", EntryType::Symlink, ""),
            ("./way/passwd", EntryType::Regular, "x"),
            ("./hard", EntryType::Link, ""),
            ("./disk", EntryType::Block, ""),
            ("./pipe", EntryType::Fifo, ""),
        ]);
        let unpacked = unpacked.unwrap();
        let left_out = unpacked.left_out.join(" ");
        for name in ["way", "hard", "disk", "pipe"] {
            assert!(left_out.contains(name), "{left_out}");
        }
        // It is a file in a folder of that name now, and nothing was written through the link.
        let path = folder.path().join("new/way");
        assert!(fs::symlink_metadata(path).unwrap().is_dir());
        assert_eq!(unpacked.files, 1);
    }

    #[test]
    fn a_tar_that_is_cut_is_an_error() {
        let whole = tar(&[("./a", EntryType::Regular, "hello")]);
        let folder = tempfile::tempdir().unwrap();
        let cut = &whole[..512 + 512 + 3];
        assert!(unpack(cut, &folder.path().join("new")).is_err());
    }
}
