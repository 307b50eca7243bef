//! Where something is: here, or in a sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tidegate_client::SandboxName;

/// A place of a file or a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On this machine.
    Here(PathBuf),
    /// In a sandbox.
    There {
        /// Which one.
        sandbox: SandboxName,
        /// The path in there; relative to where commands start.
        path: String,
    },
}

impl FromStr for Place {
    type Err = String;

    /// What stands before a colon is a sandbox, unless a slash stands before that.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some((name, path)) if !name.contains(['/', '\\']) && !is_drive(name) => {
                let sandbox = SandboxName::parse(name).map_err(|error| error.to_string())?;
                let path = match path {
                    "" => ".".to_owned(),
                    // It must not be taken for an option over there.
                    path if path.starts_with('-') => format!("./{path}"),
                    path => path.to_owned(),
                };
                Ok(Self::There { sandbox, path })
            }
            _ if text.is_empty() => Err("name a file".to_owned()),
            _ => Ok(Self::Here(text.into())),
        }
    }
}

const fn is_drive(name: &str) -> bool {
    cfg!(windows) && name.len() == 1
}

/// The name that a copy of what is at `path` here gets; none for `.`, `..` and `/`, whose contents
/// are meant.
pub(super) fn name_here(path: &Path) -> Option<OsString> {
    let ends_in_dot = path.as_os_str().as_encoded_bytes().ends_with(b"/.");
    path.file_name()
        .filter(|_| !ends_in_dot)
        .map(ToOwned::to_owned)
}

/// The same for a path in a sandbox.
pub(super) fn name_there(path: &str) -> Option<&str> {
    let name = path.trim_end_matches('/').rsplit('/').next();
    name.filter(|name| !matches!(*name, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_names_a_sandbox() {
        let there = |path: &str| Place::There {
            sandbox: SandboxName::parse("build-17").unwrap(),
            path: path.to_owned(),
        };
        let check = |text: &str, place| assert_eq!(text.parse(), Ok(place), "{text}");
        check("build-17:/etc/hosts", there("/etc/hosts"));
        check("build-17:", there("."));
        check("build-17:a:b", there("a:b"));
        check("build-17:-rf", there("./-rf"));
        for here in ["./a:b", "/x/y:z", "plain", "."] {
            check(here, Place::Here(here.into()));
        }
        assert!("".parse::<Place>().is_err());
        assert!(":x".parse::<Place>().is_err());
    }

    #[test]
    fn a_copy_is_called_as_what_was_copied() {
        let name = |path: &str| name_here(Path::new(path)).map(|it| it.into_string().unwrap());
        for (path, expected) in [
            ("a/b", Some("b")),
            ("a/b/", Some("b")),
            ("a", Some("a")),
            (".", None),
            ("/", None),
            ("a/..", None),
            ("a/.", None),
        ] {
            assert_eq!(name(path).as_deref(), expected, "{path}");
            assert_eq!(name_there(path), expected, "{path}");
        }
    }
}
