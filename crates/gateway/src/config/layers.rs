//! Where values come from: a flag wins over the environment, that over the file, that over defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use toml::Value as Toml;

use super::value::Value;
use super::{Config, ConfigError, Key};

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nowhere.
    Default,
    /// In the configuration file.
    File(PathBuf),
    /// In this environment variable.
    Environment(String),
    /// On the command line.
    Flag,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(variable) => f.write_str(variable),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// What was set, and where.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    values: BTreeMap<&'static str, (String, Source)>,
}

impl Layers {
    /// Gathers everything that is set: on the command line that [`command`](super::command) parsed,
    /// in the environment that `variable` knows, in the file that either names.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or holds a key that nobody knows.
    pub fn gather(
        flags: &ArgMatches,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Self::default();
        let file = flags.get_one::<PathBuf>("config").cloned();
        let file = file.or_else(|| variable("TIDEGATE_CONFIG").map(PathBuf::from));
        if let Some(path) = file {
            layers.add_file(&path)?;
        }
        for key in Config::KEYS {
            let name = format!("TIDEGATE_{}", key.name.to_ascii_uppercase());
            if let Some(value) = variable(&name).filter(|value| !value.is_empty()) {
                layers.set(key, value, Source::Environment(name));
            }
            if let Some(values) = flags.get_many::<String>(key.name) {
                let values: Vec<_> = values.cloned().collect();
                layers.set(key, values.join(","), Source::Flag);
            }
        }
        Ok(layers)
    }

    /// Where a key's value came from.
    pub fn source(&self, key: &str) -> Source {
        self.values
            .get(key)
            .map_or(Source::Default, |(_, source)| source.clone())
    }

    pub(super) fn read<T: Value>(
        &self,
        key: &'static str,
        default: &str,
    ) -> Result<T, ConfigError> {
        let (value, source) = match self.values.get(key) {
            Some((value, source)) => (value.as_str(), source.clone()),
            None => (default, Source::Default),
        };
        T::read(value).map_err(|remedy| ConfigError::Value {
            key,
            value: value.to_owned(),
            source_of: source,
            remedy,
        })
    }

    fn set(&mut self, key: &Key, value: String, source: Source) {
        self.values.insert(key.name, (value, source));
    }

    fn add_file(&mut self, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File {
            path: path.to_owned(),
            source,
        })?;
        let table: toml::Table = text.parse().map_err(|source| ConfigError::Syntax {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        for (name, value) in table {
            let Some(key) = Config::KEYS.iter().find(|key| key.name == name) else {
                return Err(ConfigError::Unknown {
                    key: name,
                    path: path.to_owned(),
                });
            };
            self.set(key, text_of(value), Source::File(path.to_owned()));
        }
        Ok(())
    }
}

/// A TOML value in the form in which the command line would have it.
fn text_of(value: Toml) -> String {
    match value {
        Toml::String(text) => text,
        Toml::Array(items) => items.into_iter().map(text_of).collect::<Vec<_>>().join(","),
        Toml::Integer(_)
        | Toml::Float(_)
        | Toml::Boolean(_)
        | Toml::Datetime(_)
        | Toml::Table(_) => value.to_string(),
    }
}
