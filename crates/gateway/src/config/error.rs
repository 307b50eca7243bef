//! What can be wrong with a configuration, with the key, the value and what to do.

use std::path::PathBuf;

use thiserror::Error;

use super::layers::Source;
use super::value::Remedy;

/// Why a configuration cannot be used.
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
    /// The file is not TOML.
    #[error("the configuration file {path} is not TOML: {source}")]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// What is wrong, and where.
        source: Box<toml::de::Error>,
    },
    /// The file has a key that nobody knows.
    #[error(
        "unknown key `{key}` in {path}: `tidegate-gateway --print-config` lists the keys there are"
    )]
    Unknown {
        /// The key.
        key: String,
        /// The file.
        path: PathBuf,
    },
    /// A value has not the form its key takes.
    #[error("`{key}` is set to {value:?} ({source_of}): {remedy}")]
    Value {
        /// The key.
        key: &'static str,
        /// What it was set to.
        value: String,
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
        remedy: &'static str,
    },
    /// Keys do not go together, or one is missing.
    #[error("{0}")]
    Conflict(&'static str),
}
