//! Where values come from: a flag wins over the environment, that over the file, that over defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use toml::Value as Toml;

use super::error::Given;
use super::table::variable as variable_of;
use super::{ConfigError, Key, Program, Remedy, Value};

/// Where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Nowhere.
    Default,
    /// By the program itself.
    Program,
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
            Self::Program => f.write_str("program"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(variable) => f.write_str(variable),
            Self::Flag => f.write_str("command line"),
        }
    }
}

/// What was set, and where.
#[derive(Clone, Default)]
pub struct Layers {
    values: BTreeMap<&'static str, (String, Source)>,
}

impl Layers {
    /// What a program says by itself, in place of a person.
    pub fn said<'a>(values: impl IntoIterator<Item = (&'static str, &'a str)>) -> Self {
        let said = |(key, value): (_, &str)| (key, (value.to_owned(), Source::Program));
        Self {
            values: values.into_iter().map(said).collect(),
        }
    }

    /// Gathers everything that is set: on the command line that [`Program::command`] parsed, in the
    /// environment that `variable` knows, in the file that either names.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or holds a key that nobody knows.
    pub fn gather(
        program: &Program,
        flags: &ArgMatches,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, ConfigError> {
        let mut layers = Self::default();
        let file = flags.get_one::<PathBuf>("config").cloned();
        let file = file.or_else(|| variable("TIDEGATE_CONFIG").map(PathBuf::from));
        if let Some(path) = file {
            layers.add_file(program, &path)?;
        }
        for key in program.keys {
            let name = variable_of(key.name);
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

    /// Reads the value of a key.
    ///
    /// # Errors
    ///
    /// When it has not the form that the key takes, its rule does not allow it, or there is none.
    pub fn read<T: Value>(
        &self,
        key: &'static str,
        default: Option<&str>,
        rule: fn(&T) -> Result<(), Remedy>,
    ) -> Result<T, ConfigError> {
        let missing = ConfigError::Missing { key, kind: T::KIND };
        self.find(key, default, rule)?.ok_or(missing)
    }

    /// Reads the value of a key and writes it as TOML, without secrets.
    ///
    /// # Errors
    ///
    /// When it has not the form that the key takes, or its rule does not allow it.
    pub fn show<T: Value>(
        &self,
        key: &'static str,
        default: Option<&str>,
        rule: fn(&T) -> Result<(), Remedy>,
    ) -> Result<Option<String>, ConfigError> {
        let value = self.find(key, default, rule)?;
        Ok(value.as_ref().map(T::show))
    }

    fn find<T: Value>(
        &self,
        key: &'static str,
        default: Option<&str>,
        rule: fn(&T) -> Result<(), Remedy>,
    ) -> Result<Option<T>, ConfigError> {
        let set = self.values.get(key).map(|(text, _)| text.as_str());
        let Some(text) = set.or(default) else {
            return Ok(None);
        };
        let allowed = T::read(text).and_then(|value| rule(&value).map(|()| value));
        allowed.map(Some).map_err(|remedy| ConfigError::Value {
            key,
            value: if T::SECRET {
                Given::Secret
            } else {
                Given::Shown(text.to_owned())
            },
            source_of: self.source(key),
            remedy,
        })
    }

    fn set(&mut self, key: &Key, value: String, source: Source) {
        self.values.insert(key.name, (value, source));
    }

    fn add_file(&mut self, program: &Program, path: &Path) -> Result<(), ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|source| ConfigError::File {
            path: path.to_owned(),
            source,
        })?;
        let table: toml::Table = text.parse().map_err(|error| syntax(path, &text, &error))?;
        for (name, value) in table {
            let Some(key) = program.keys.iter().find(|key| key.name == name) else {
                return Err(ConfigError::Unknown {
                    key: name,
                    path: path.to_owned(),
                    program: program.name,
                });
            };
            self.set(key, text_of(value), Source::File(path.to_owned()));
        }
        Ok(())
    }
}

/// Only the names: values may be secrets.
impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sources = self.values.iter().map(|(key, (_, source))| (key, source));
        f.debug_map().entries(sources).finish()
    }
}

/// What is wrong with a file, without its text.
fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> ConfigError {
    let start = error.span().map_or(0, |span| span.start);
    let before = text.as_bytes().iter().take(start);
    ConfigError::Syntax {
        path: path.to_owned(),
        line: before.filter(|byte| **byte == b'\n').count() + 1,
        message: error.message().to_owned(),
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
