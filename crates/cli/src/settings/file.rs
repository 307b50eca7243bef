//! The file of contexts: read whole, written whole, never half.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::folder;
use crate::failure::Failure;

const HEAD: &str = "# Contexts of tidegate; `tidegate context` writes this file.\n";

/// All contexts, and which one is current.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// The current one.
    #[serde(rename = "context", skip_serializing_if = "Option::is_none")]
    pub(crate) current: Option<String>,
    /// Each by its name.
    #[serde(
        default,
        rename = "contexts",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub(crate) all: BTreeMap<String, Context>,
}

/// A gateway, and the credentials for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    /// URLs of one service.
    pub(crate) gateway: Vec<String>,
    /// The authority of its certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
    /// The certificate to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cert: Option<PathBuf>,
    /// Its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<PathBuf>,
    /// A file with a bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    /// Which one was current before `tidegate dev` made this one, for as long as it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) before: Option<String>,
}

impl Contexts {
    /// Reads the user's file. One that does not exist has no contexts.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or holds a key that nobody knows, which is named.
    pub(crate) fn load() -> Result<Self, Failure> {
        folder::config_file().map_or_else(|| Ok(Self::default()), |path| Self::read(&path))
    }

    /// Changes the user's file. Two who do so at once take turns.
    ///
    /// # Errors
    ///
    /// Those of `change`, or when the file cannot be read or written; it is then as it was.
    pub(crate) fn update<T>(
        change: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Some(path) = folder::config_file() else {
            let sentence = "cannot find the user's configuration folder";
            return Err(Failure::settings(sentence, "Set XDG_CONFIG_HOME or HOME."));
        };
        Self::update_at(&path, change)
    }

    fn update_at<T>(
        path: &Path,
        change: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        // A file that is a link, as people's dotfiles are, stays one.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let _turn = lock(path).map_err(|error| unwritable(path, error))?;
        let mut contexts = Self::read(path)?;
        let result = change(&mut contexts)?;
        contexts
            .write(path)
            .map_err(|error| unwritable(path, error))?;
        Ok(result)
    }

    fn read(path: &Path) -> Result<Self, Failure> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                let what = format!("read the configuration {}", path.display());
                return Err(Failure::io(what, error));
            }
        };
        toml::from_str(&text).map_err(|error| {
            let sentence = format!(
                "the configuration {} is not valid: {}",
                path.display(),
                error.to_string().trim_end()
            );
            Failure::settings(sentence, "Correct it, or remove it.")
        })
    }

    /// Replaces the file in one step; only its owner may read it.
    fn write(&self, path: &Path) -> std::io::Result<()> {
        let folder = path.parent().unwrap_or_else(|| Path::new("."));
        let text = toml::to_string(self).map_err(std::io::Error::other)?;
        let mut file = NamedTempFile::new_in(folder)?;
        write!(file, "{HEAD}{text}")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}

/// Waits for the right to change the file; dropping what is returned gives it back.
fn lock(path: &Path) -> std::io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.with_extension("lock"))?;
    file.lock()?;
    Ok(file)
}

fn unwritable(path: &Path, error: std::io::Error) -> Failure {
    Failure::io(format!("write the configuration {}", path.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context(url: &str) -> Context {
        Context {
            gateway: vec![url.to_owned()],
            ..Context::default()
        }
    }

    fn add(path: &Path, name: &str) -> Result<(), Failure> {
        Contexts::update_at(path, |contexts| {
            contexts.all.insert(name.to_owned(), context("http://a:1"));
            Ok(())
        })
    }

    #[test]
    fn what_was_written_is_read_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/config.toml");
        add(&path, "one").unwrap();
        add(&path, "two").unwrap();
        let contexts = Contexts::read(&path).unwrap();
        assert_eq!(contexts.all.len(), 2);
        assert_eq!(contexts.all["one"], context("http://a:1"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn many_who_write_at_once_lose_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::thread::scope(|scope| {
            for n in 0..16 {
                let path = &path;
                scope.spawn(move || add(path, &n.to_string()).unwrap());
            }
        });
        assert_eq!(Contexts::read(&path).unwrap().all.len(), 16);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, real) = (
            folder.path().join("config.toml"),
            folder.path().join("dotfile"),
        );
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &path).unwrap();
        add(&path, "one").unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
        assert_eq!(Contexts::read(&real).unwrap().all.len(), 1);
    }

    #[test]
    fn an_unknown_key_is_named_and_the_file_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let text = "[contexts.work]\ngateway = [\"http://a:1\"]\ngatewy = 1\n";
        fs::write(&path, text).unwrap();
        let sentence = add(&path, "other").unwrap_err().sentence().unwrap();
        assert!(sentence.contains("gatewy"), "{sentence}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
}
