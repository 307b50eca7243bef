//! From the folder where everything arrived to where it belongs, by renaming: a name leads to the
//! whole file or to what was there before.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::modes;
use super::unpack::Folder;

/// Moves what arrived at `from` to `to`. A folder that is there already keeps what else is in it.
///
/// # Errors
///
/// When something that is not of its kind is in the way, or the system refuses.
pub(super) fn settle(from: &Path, to: &Path, folders: &[Folder]) -> io::Result<()> {
    let new = folders.iter().filter(|folder| !below(to, folder).is_dir());
    let new: Vec<_> = new.collect();
    place(from, to)?;
    // Children first: what may not be written to can still be looked into.
    for folder in new.into_iter().rev() {
        let open = File::open(below(to, folder))?;
        // Some systems do not let the time of a folder be set this way.
        let _ = open.set_modified(folder.modified);
        modes::set(&open, folder.mode)?;
    }
    Ok(())
}

fn below(to: &Path, folder: &Folder) -> std::path::PathBuf {
    if folder.path.as_os_str().is_empty() {
        to.to_owned()
    } else {
        to.join(&folder.path)
    }
}

fn place(from: &Path, to: &Path) -> io::Result<()> {
    let there = match fs::symlink_metadata(to) {
        Ok(there) => there,
        Err(error) if error.kind() == ErrorKind::NotFound => return rename(from, to),
        Err(error) => return Err(at(to, &error)),
    };
    match (fs::symlink_metadata(from)?.is_dir(), there.is_dir()) {
        (true, true) => {
            for child in fs::read_dir(from)? {
                let child = child?;
                place(&child.path(), &to.join(child.file_name()))?;
            }
            Ok(())
        }
        (true, false) => Err(in_the_way(to, "is not a folder")),
        (false, true) => Err(in_the_way(to, "is a folder")),
        (false, false) => rename(from, to),
    }
}

fn rename(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to).map_err(|error| at(to, &error))
}

fn in_the_way(path: &Path, what: &str) -> io::Error {
    let message = format!("{} {what}", path.display());
    io::Error::new(ErrorKind::AlreadyExists, message)
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_merged_and_files_replaced() {
        let home = tempfile::tempdir().unwrap();
        let (from, to) = (home.path().join("from"), home.path().join("to"));
        for (folder, file, text) in [
            (&from, "a/x", "new"),
            (&from, "b/y", "new"),
            (&to, "a/x", "old"),
            (&to, "a/z", "old"),
        ] {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        settle(&from, &to, &[]).unwrap();
        let read = |file: &str| fs::read_to_string(to.join(file)).unwrap();
        assert_eq!(
            [read("a/x"), read("b/y"), read("a/z")],
            ["new", "new", "old"]
        );
    }

    #[test]
    fn nothing_of_another_kind_is_replaced() {
        let home = tempfile::tempdir().unwrap();
        let (file, folder) = (home.path().join("file"), home.path().join("folder"));
        fs::write(&file, "x").unwrap();
        fs::create_dir(&folder).unwrap();
        assert!(settle(&file, &folder, &[]).is_err());
        assert!(settle(&folder, &file, &[]).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_here_is_replaced_and_never_followed() {
        let home = tempfile::tempdir().unwrap();
        let path = |name: &str| home.path().join(name);
        fs::create_dir(path("elsewhere")).unwrap();
        std::os::unix::fs::symlink(path("elsewhere"), path("link")).unwrap();
        fs::create_dir(path("folder")).unwrap();
        assert!(settle(&path("folder"), &path("link"), &[]).is_err());
        fs::write(path("file"), "x").unwrap();
        settle(&path("file"), &path("link"), &[]).unwrap();
        assert!(fs::symlink_metadata(path("link")).unwrap().is_file());
        assert_eq!(fs::read_dir(path("elsewhere")).unwrap().count(), 0);
    }
}
