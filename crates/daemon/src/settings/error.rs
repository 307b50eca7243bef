//! What can be wrong with a configuration, with the key, the value and what to do.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use super::layers::Source;
use super::table::{flag, variable};

/// Why a configuration cannot be used. No secret is in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file {path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not TOML. What stands there is not repeated: it may be a secret.
    #[error("the configuration file {path} is not TOML: line {line}: {message}")]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Where, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// The file has a key that nobody knows.
    #[error("unknown key `{key}` in {path}: `{program} --print-config` lists the keys there are")]
    Unknown {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
        /// Whose keys they are.
        program: &'static str,
    },
    /// A key that has no default was not set.
    #[error(
        "`{key}` is not set: use --{} {kind}, {} or the configuration file",
        flag(key),
        variable(key)
    )]
    Missing {
        /// The key.
        key: &'static str,
        /// The form of its value.
        kind: &'static str,
    },
    /// A value has not the form its key takes, or is not allowed.
    #[error("`{key}` {value} ({source_of}): {remedy}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it was set to.
        value: Given,
        /// Where it was set.
        source_of: Source,
        /// What to write.
        remedy: Remedy,
    },
    /// A value is outside what its key takes.
    #[error("`{key}` is set to {value}: {remedy}")]
    Range {
        /// The key.
        key: &'static str,
        /// What it was set to.
        value: String,
        /// What to write.
        remedy: Remedy,
    },
    /// Keys do not go together, or one is missing.
    #[error("{0}")]
    Conflict(Cow<'static, str>),
}

impl ConfigError {
    /// Says in a sentence, with what to do, why keys do not go together.
    pub fn conflict(sentence: impl Into<Cow<'static, str>>) -> Self {
        Self::Conflict(sentence.into())
    }
}

/// What a key was set to, as an error may show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// As it was given.
    Shown(String),
    /// It may hold a secret.
    Secret,
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shown(text) => write!(f, "is set to {text:?}"),
            Self::Secret => f.write_str("cannot be used"),
        }
    }
}

/// What is wrong with a value, and what to write instead. It repeats no secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy(Cow<'static, str>);

impl Remedy {
    /// Says what to write; to follow a colon.
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
