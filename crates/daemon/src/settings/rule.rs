//! What a value must obey beyond its form.

use std::time::Duration;

use super::{ConfigError, Remedy, Value};
use crate::Size;

/// An amount that may be nothing.
pub trait Amount {
    /// Whether it is none at all.
    fn is_nothing(&self) -> bool;
}

impl Amount for Duration {
    fn is_nothing(&self) -> bool {
        self.is_zero()
    }
}

impl Amount for usize {
    fn is_nothing(&self) -> bool {
        *self == 0
    }
}

impl Amount for Size {
    fn is_nothing(&self) -> bool {
        self.0 == 0
    }
}

/// What is off is not an amount.
impl<T: Amount> Amount for Option<T> {
    fn is_nothing(&self) -> bool {
        self.as_ref().is_some_and(T::is_nothing)
    }
}

/// Allows everything.
///
/// # Errors
///
/// Never.
pub const fn any<T>(_: &T) -> Result<(), Remedy> {
    Ok(())
}

/// Allows more than nothing.
///
/// # Errors
///
/// When it is 0.
pub fn positive<T: Amount>(amount: &T) -> Result<(), Remedy> {
    allow(!amount.is_nothing(), "it must be more than nothing")
}

/// Allows lists with something in them.
///
/// # Errors
///
/// When there is nothing.
#[expect(clippy::ptr_arg, reason = "a rule takes the very type of its key")]
pub fn filled<T>(list: &Vec<T>) -> Result<(), Remedy> {
    allow(!list.is_empty(), "write at least one")
}

/// Allows the windows that a stream of HTTP/2 works well with.
///
/// # Errors
///
/// When it is below 64 KiB or above 16 MiB.
pub fn stream_window(window: &Size) -> Result<(), Remedy> {
    allow(
        (64 << 10..=16 << 20).contains(&window.0),
        "write 64KiB to 16MiB",
    )
}

fn allow(is_allowed: bool, remedy: &'static str) -> Result<(), Remedy> {
    if is_allowed {
        Ok(())
    } else {
        Err(Remedy::new(remedy))
    }
}

/// Applies a rule to the value of the key called `name`.
///
/// # Errors
///
/// [`ConfigError::Range`], when the rule does not allow the value.
pub fn check<T: Value>(
    name: &'static str,
    value: &T,
    rule: fn(&T) -> Result<(), Remedy>,
) -> Result<(), ConfigError> {
    rule(value).map_err(|remedy| ConfigError::Range {
        key: name,
        value: value.show(),
        remedy,
    })
}
