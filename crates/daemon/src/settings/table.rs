//! The table: each key once, with all there is to say about it.

use super::{ConfigError, Layers};

/// Writes the settings of a program down once: as a struct, as a list of [`Key`]s, and as the code
/// between them.
///
/// A field is a key. Its documentation is the help of its flag, its type a [`Value`](super::Value),
/// its default stands as people would write it; without one it has to be set. Behind `where` stands a
/// rule for the value, a `fn(&T) -> Result<(), Remedy>`, as those of [`rule`](super::rule).
///
/// ```
/// use std::time::Duration;
/// use tidegate_daemon::settings::{Layers, rule::positive};
///
/// tidegate_daemon::settings! {
///     /// What an operator can set.
///     pub struct Config {
///         /// The name that people ask for.
///         name: String,
///         /// How long anything may take.
///         patience: Duration = "10s" where positive,
///     }
/// }
///
/// let config = Config::read(&Layers::said([("name", "tide")]))?;
/// assert_eq!(config.patience, Duration::from_secs(10));
/// # Ok::<(), tidegate_daemon::ConfigError>(())
/// ```
#[macro_export]
macro_rules! settings {
    (@default) => { ::core::option::Option::None };
    (@default $default:literal) => { ::core::option::Option::Some($default) };
    (@rule) => { $crate::settings::rule::any };
    (@rule $rule:expr) => { $rule };
    (
        $(#[$about:meta])*
        $vis:vis struct $Config:ident {
            $(
                $(#[doc = $help:literal])+
                $name:ident: $kind:ty $(= $default:literal)? $(where $rule:expr)?,
            )+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug)]
        $vis struct $Config {
            $($(#[doc = $help])+ $vis $name: $kind,)+
        }

        impl $Config {
            /// Every key, in the order of the documentation.
            $vis const KEYS: &'static [$crate::settings::Key] = &[
                $($crate::settings::Key {
                    name: stringify!($name),
                    kind: <$kind as $crate::settings::Value>::KIND,
                    arity: <$kind as $crate::settings::Value>::ARITY,
                    default: $crate::settings!(@default $($default)?),
                    help: concat!($($help),+),
                    show: |layers| layers.show::<$kind>(
                        stringify!($name),
                        $crate::settings!(@default $($default)?),
                        $crate::settings!(@rule $($rule)?),
                    ),
                },)+
            ];

            /// Reads what the layers say.
            ///
            /// # Errors
            ///
            /// [`ConfigError`](tidegate_daemon::ConfigError) names the key, what it was set to and
            /// what it takes.
            $vis fn read(layers: &$crate::settings::Layers) -> Result<Self, $crate::ConfigError> {
                Ok(Self {
                    $($name: layers.read(
                        stringify!($name),
                        $crate::settings!(@default $($default)?),
                        $crate::settings!(@rule $($rule)?),
                    )?,)+
                })
            }

            /// Applies each key's rule, for a configuration that was put together by a program.
            ///
            /// # Errors
            ///
            /// [`ConfigError`](tidegate_daemon::ConfigError) names the key and what it takes.
            $vis fn check(&self) -> Result<(), $crate::ConfigError> {
                $($crate::settings::rule::check(
                    stringify!($name),
                    &self.$name,
                    $crate::settings!(@rule $($rule)?),
                )?;)+
                Ok(())
            }
        }
    };
}

/// A key, as the command line and the documentation show it.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name in the file; with dashes it is the flag, in capitals the variable.
    pub name: &'static str,
    /// The form of its value.
    pub kind: &'static str,
    /// How many values it has.
    pub arity: Arity,
    /// Its default, in that form; none if it has to be set.
    pub default: Option<&'static str>,
    /// What it does.
    pub help: &'static str,
    /// Writes its value as TOML, without secrets; none if it is not set and has no default.
    pub show: fn(&Layers) -> Result<Option<String>, ConfigError>,
}

/// How many values a key has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// One, and the bare flag stands for `true`.
    Switch,
    /// One.
    One,
    /// Any number: the flag is repeated, or commas separate them.
    List,
}

impl Key {
    /// Its line of a configuration file, and behind it where the value came from. A key that has to
    /// be set and is not is a comment.
    pub(super) fn line(&self, layers: &Layers) -> Result<String, ConfigError> {
        let (line, origin) = match (self.show)(layers)? {
            Some(value) => {
                let line = format!("{} = {value}", self.name);
                (line, layers.source(self.name).to_string())
            }
            None => {
                let line = format!("# {} = {}", self.name, self.kind);
                (line, "has to be set".to_owned())
            }
        };
        Ok(format!("{line:<58} # {origin}\n"))
    }
}

/// The flag of the key called `name`.
pub(super) fn flag(name: &str) -> String {
    name.replace('_', "-")
}

/// The environment variable of the key called `name`.
pub(super) fn variable(name: &str) -> String {
    format!("TIDEGATE_{}", name.to_ascii_uppercase())
}
