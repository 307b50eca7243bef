//! One value out of flag, environment, file and default, and the memory of which it was.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;
use serde::de::DeserializeOwned;

/// Where a value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nobody said anything.
    Default,
    /// The configuration file.
    File,
    /// An environment variable.
    Environment,
    /// The command line.
    Flag,
}

impl Source {
    /// The word that people read.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "file",
            Self::Environment => "environment",
            Self::Flag => "flag",
        }
    }
}

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file holds something else than it should; the message names the key.
    #[error("the configuration {} is not valid: {source}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// What is wrong, where.
        source: Box<toml::de::Error>,
    },
    /// A value that is of the right form cannot be used, or one is missing.
    #[error("{key}: {message}")]
    Value {
        /// The configuration key; the flag has dashes in place of underscores.
        key: &'static str,
        /// What is wrong with it.
        message: String,
    },
}

impl ConfigError {
    /// Says that `key` cannot be used because of `message`.
    pub fn value(key: &'static str, message: impl Display) -> Self {
        Self::Value {
            key,
            message: message.to_string(),
        }
    }
}

/// Reads a configuration file. Its type should be `deny_unknown_fields`.
///
/// # Errors
///
/// When the file cannot be read, or holds another key or value than its type.
pub fn read_file<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|source| ConfigError::Parse {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// One line of the effective configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// The configuration key.
    pub key: &'static str,
    /// Its value as a person would write it; empty when there is none.
    pub value: String,
    /// Where the value came from.
    pub source: Source,
}

/// Picks values and remembers where they came from.
#[derive(Debug, Default)]
pub struct Settings<'a> {
    matches: Option<&'a ArgMatches>,
    effective: Vec<Effective>,
}

impl<'a> Settings<'a> {
    /// Looks into `matches` to tell flags from environment variables. The id of an argument is the
    /// configuration key.
    pub const fn new(matches: &'a ArgMatches) -> Self {
        Self {
            matches: Some(matches),
            effective: Vec::new(),
        }
    }

    /// The first of what was `given` on the command line or by the environment, what the `file`
    /// holds, and the `default`.
    pub fn pick<T: Display>(
        &mut self,
        key: &'static str,
        given: Option<T>,
        file: Option<T>,
        default: T,
    ) -> T {
        let (value, source) = self.first(key, given, file);
        let value = value.unwrap_or(default);
        self.note(key, value.to_string(), source);
        value
    }

    /// As [`Settings::pick`], where nothing is a value too.
    pub fn pick_optional<T: Display>(
        &mut self,
        key: &'static str,
        given: Option<T>,
        file: Option<T>,
    ) -> Option<T> {
        let (value, source) = self.first(key, given, file);
        let shown = value.as_ref().map(T::to_string);
        self.note(key, shown.unwrap_or_default(), source);
        value
    }

    /// As [`Settings::pick`], for lists: an empty one counts as not given.
    pub fn pick_list<T: Display>(
        &mut self,
        key: &'static str,
        given: Vec<T>,
        file: Vec<T>,
    ) -> Vec<T> {
        let filled = |list: Vec<T>| (!list.is_empty()).then_some(list);
        let (list, source) = self.first(key, filled(given), filled(file));
        let list = list.unwrap_or_default();
        let shown: Vec<String> = list.iter().map(T::to_string).collect();
        self.note(key, shown.join(", "), source);
        list
    }

    /// The whole effective configuration, in the order in which it was asked for.
    pub fn effective(&self) -> &[Effective] {
        &self.effective
    }

    /// The effective configuration as TOML, each value with its source as a comment.
    pub fn print(&self) -> String {
        let line = |one: &Effective| {
            let source = one.source.as_str();
            if one.value.is_empty() {
                format!("# {} is not set  # {source}\n", one.key)
            } else {
                format!("{} = {:?}  # {source}\n", one.key, one.value)
            }
        };
        self.effective.iter().map(line).collect()
    }

    fn first<T>(&self, key: &str, given: Option<T>, file: Option<T>) -> (Option<T>, Source) {
        match (given, file) {
            (Some(value), _) => (Some(value), self.given_by(key)),
            (None, Some(value)) => (Some(value), Source::File),
            (None, None) => (None, Source::Default),
        }
    }

    fn given_by(&self, key: &str) -> Source {
        let from = |matches: &ArgMatches| {
            // An id that the command does not have would be a panic to ask for.
            matches.try_contains_id(key).ok()?;
            matches.value_source(key)
        };
        match self.matches.and_then(from) {
            Some(ValueSource::EnvVariable) => Source::Environment,
            Some(_) | None => Source::Flag,
        }
    }

    fn note(&mut self, key: &'static str, value: String, source: Source) {
        self.effective.push(Effective { key, value, source });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dur;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        #[expect(dead_code, reason = "only its being read is tested")]
        wait: Option<Dur>,
    }

    #[test]
    fn the_flag_comes_before_the_file_and_the_file_before_the_default() {
        let mut settings = Settings::default();
        let dur = Dur::secs;
        assert_eq!(
            settings.pick("a", Some(dur(1)), Some(dur(2)), dur(3)),
            dur(1)
        );
        assert_eq!(settings.pick("b", None, Some(dur(2)), dur(3)), dur(2));
        assert_eq!(settings.pick("c", None, None, dur(3)), dur(3));
        assert_eq!(settings.pick_optional::<Dur>("d", None, None), None);
        assert_eq!(settings.pick_list("e", vec![1, 2], vec![3]), [1, 2]);
        assert_eq!(
            settings.print(),
            "a = \"1s\"  # flag\nb = \"2s\"  # file\nc = \"3s\"  # default\n\
             # d is not set  # default\ne = \"1, 2\"  # flag\n"
        );
    }

    #[test]
    fn the_environment_is_told_from_the_command_line() {
        let command = clap::Command::new("x").arg(clap::Arg::new("wait").long("wait").env("PATH"));
        let matches = command.clone().get_matches_from(["x"]);
        let mut settings = Settings::new(&matches);
        settings.pick_optional("wait", matches.get_one::<String>("wait"), None);
        let matches = command.get_matches_from(["x", "--wait", "1"]);
        let mut by_flag = Settings::new(&matches);
        by_flag.pick_optional("wait", matches.get_one::<String>("wait"), None);
        assert_eq!(settings.effective()[0].source, Source::Environment);
        assert_eq!(by_flag.effective()[0].source, Source::Flag);
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "wait = \"2s\"\nwaitt = 1\n").unwrap();
        let error = read_file::<File>(&path).unwrap_err().to_string();
        assert!(error.contains("waitt"), "{error}");
        let error = read_file::<File>(Path::new("/nowhere")).unwrap_err();
        assert!(matches!(error, ConfigError::Read { .. }), "{error}");
    }
}
