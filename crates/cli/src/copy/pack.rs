//! A file or a folder of this machine as a tar.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tar::{Builder, EntryType, Header};

use super::modes;

/// What the copied thing is called in the tar: its name over there is not for the tar to say.
const ROOT: &str = "new";

/// What was packed.
#[derive(Debug, Default)]
pub(super) struct Packed {
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// What was left out, and why.
    pub(super) left_out: Vec<String>,
}

/// How many bytes there are in the files at `path`.
pub(super) fn size(path: &Path) -> u64 {
    let Ok(metadata) = fs::metadata(path) else {
        return 0;
    };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let children = fs::read_dir(path).into_iter().flatten().flatten();
    let sizes = children.map(|child| match child.file_type() {
        Ok(kind) if kind.is_dir() => size(&child.path()),
        Ok(kind) if kind.is_file() => child.metadata().map_or(0, |it| it.len()),
        Ok(_) | Err(_) => 0,
    });
    sizes.sum()
}

/// Packs what is at `path`: a link there is followed, those in a folder are copied as links.
///
/// # Errors
///
/// When something cannot be read, changes while it is, or nobody takes the tar.
pub(super) fn pack(path: &Path, tar: impl Write) -> io::Result<Packed> {
    let mut pack = Pack {
        builder: Builder::new(tar),
        packed: Packed::default(),
    };
    let metadata = fs::metadata(path).map_err(|error| at(path, &error))?;
    pack.add(path, PathBuf::from(ROOT), &metadata)?;
    pack.builder.into_inner()?.flush()?;
    Ok(pack.packed)
}

struct Pack<W: Write> {
    builder: Builder<W>,
    packed: Packed,
}

impl<W: Write> Pack<W> {
    fn add(&mut self, path: &Path, name: PathBuf, metadata: &Metadata) -> io::Result<()> {
        let kind = metadata.file_type();
        if kind.is_dir() {
            self.folder(path, name, metadata)
        } else if kind.is_file() {
            self.file(path, &name, metadata)
        } else if kind.is_symlink() {
            let mut header = header(metadata, EntryType::Symlink, 0);
            let target = fs::read_link(path).map_err(|error| at(path, &error))?;
            self.builder.append_link(&mut header, name, target)
        } else {
            let what = format!("{} (neither a file nor a folder)", path.display());
            self.packed.left_out.push(what);
            Ok(())
        }
    }

    fn folder(&mut self, path: &Path, name: PathBuf, metadata: &Metadata) -> io::Result<()> {
        let mut header = header(metadata, EntryType::Directory, 0);
        self.builder.append_data(&mut header, &name, io::empty())?;
        for child in fs::read_dir(path).map_err(|error| at(path, &error))? {
            let child = child.map_err(|error| at(path, &error))?;
            let path = child.path();
            let metadata = fs::symlink_metadata(&path).map_err(|error| at(&path, &error))?;
            self.add(&path, name.join(child.file_name()), &metadata)?;
        }
        Ok(())
    }

    fn file(&mut self, path: &Path, name: &Path, metadata: &Metadata) -> io::Result<()> {
        let file = File::open(path).map_err(|error| at(path, &error))?;
        let mut exact = Exact {
            file,
            left: metadata.len(),
        };
        let mut header = header(metadata, EntryType::Regular, metadata.len());
        let added = self.builder.append_data(&mut header, name, &mut exact);
        added.map_err(|error| at(path, &error))?;
        self.packed.files += 1;
        self.packed.bytes += metadata.len();
        Ok(())
    }
}

/// As many bytes of a file as it had: the tar has promised them.
struct Exact {
    file: File,
    left: u64,
}

impl Read for Exact {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let read = self.file.read(&mut buffer[..len])?;
        if read == 0 && len > 0 {
            return Err(io::Error::other("it became shorter while it was read"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

/// Nobody's: who unpacks it owns it.
fn header(metadata: &Metadata, kind: EntryType, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(modes::of(metadata));
    let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let since = modified.duration_since(SystemTime::UNIX_EPOCH);
    header.set_mtime(since.map_or(0, |since| since.as_secs()));
    header
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::unpack::unpack;
    use super::*;

    #[test]
    fn what_is_packed_can_be_unpacked() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        let long = "n".repeat(200);
        fs::create_dir_all(path("tree/sub")).unwrap();
        fs::write(path("tree/sub").join(&long), vec![7; 100_000]).unwrap();
        fs::write(path("tree/empty"), "").unwrap();
        let mut tar = Vec::new();
        let packed = pack(&path("tree"), &mut tar).unwrap();
        assert_eq!((packed.files, packed.bytes), (2, 100_000));
        assert_eq!(size(&path("tree")), 100_000);
        let unpacked = unpack(&tar[..], &path("out")).unwrap();
        assert_eq!((unpacked.files, unpacked.bytes), (2, 100_000));
        let read = fs::read(path("out/new/sub").join(long)).unwrap();
        assert_eq!(read, vec![7; 100_000]);
    }

    #[test]
    fn a_file_that_shrinks_ends_the_copy() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, "short").unwrap();
        let file = File::open(&path).unwrap();
        let mut exact = Exact { file, left: 6 };
        assert!(io::copy(&mut exact, &mut io::sink()).is_err());
    }
}
