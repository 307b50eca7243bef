//! The forms that values have, read from text and written back.

use std::path::PathBuf;
use std::time::Duration;

use super::{Arity, Remedy};
use crate::{Dur, Size};

/// A form of value.
pub trait Value: Sized {
    /// What stands for it in `--help`.
    const KIND: &'static str;

    /// How many of it the command line takes.
    const ARITY: Arity = Arity::One;

    /// Whether the text may hold a secret. It is in no error then, and [`Value::show`] leaves the
    /// secret out.
    const SECRET: bool = false;

    /// Reads the value as people write it.
    ///
    /// # Errors
    ///
    /// [`Remedy`] says what to write.
    fn read(text: &str) -> Result<Self, Remedy>;

    /// Writes the value as TOML.
    fn show(&self) -> String;
}

impl Value for Duration {
    const KIND: &'static str = "DUR";

    fn read(text: &str) -> Result<Self, Remedy> {
        let dur = text.parse::<Dur>();
        dur.map(|dur| dur.0)
            .map_err(|_| Remedy::new("write a time, as 1500ms, 2s, 5m or 1h"))
    }

    fn show(&self) -> String {
        quoted(&Dur(*self).to_string())
    }
}

impl Value for Size {
    const KIND: &'static str = "SIZE";

    fn read(text: &str) -> Result<Self, Remedy> {
        text.parse()
            .map_err(|_| Remedy::new("write a size, as 64KiB, 1MiB or 1GiB"))
    }

    fn show(&self) -> String {
        quoted(&self.to_string())
    }
}

impl Value for String {
    const KIND: &'static str = "TEXT";

    fn read(text: &str) -> Result<Self, Remedy> {
        Ok(text.to_owned())
    }

    fn show(&self) -> String {
        quoted(self)
    }
}

impl Value for usize {
    const KIND: &'static str = "N";

    fn read(text: &str) -> Result<Self, Remedy> {
        text.parse()
            .map_err(|_| Remedy::new("write a whole number"))
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    const KIND: &'static str = "BOOL";
    const ARITY: Arity = Arity::Switch;

    fn read(text: &str) -> Result<Self, Remedy> {
        match text {
            "true" | "1" | "yes" => Ok(true),
            "false" | "0" | "no" => Ok(false),
            _ => Err(Remedy::new("write true or false")),
        }
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for PathBuf {
    const KIND: &'static str = "FILE";

    fn read(text: &str) -> Result<Self, Remedy> {
        Ok(text.into())
    }

    fn show(&self) -> String {
        quoted(&self.display().to_string())
    }
}

impl<T: Value> Value for Option<T> {
    const KIND: &'static str = T::KIND;
    const SECRET: bool = T::SECRET;

    fn read(text: &str) -> Result<Self, Remedy> {
        match text {
            "off" => Ok(None),
            text => T::read(text).map(Some),
        }
    }

    fn show(&self) -> String {
        self.as_ref().map_or_else(|| quoted("off"), Value::show)
    }
}

impl<T: Value> Value for Vec<T> {
    const KIND: &'static str = T::KIND;
    const ARITY: Arity = Arity::List;
    const SECRET: bool = T::SECRET;

    fn read(text: &str) -> Result<Self, Remedy> {
        let items = text.split(',').map(str::trim);
        items.filter(|item| !item.is_empty()).map(T::read).collect()
    }

    fn show(&self) -> String {
        let items: Vec<_> = self.iter().map(T::show).collect();
        format!("[{}]", items.join(", "))
    }
}

/// Writes text as a TOML string.
pub fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
