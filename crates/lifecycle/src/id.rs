//! Names that cannot be mixed up: one newtype per kind of thing that has an id.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

macro_rules! text_ids {
    ($($(#[$doc:meta])* $name:ident;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Wraps an id that its maker has chosen.
            pub fn new(id: impl Into<Arc<str>>) -> Self {
                Self(id.into())
            }

            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )+};
}

text_ids! {
    /// One session of a supervisor, chosen by the gateway that accepted it.
    SessionId;
    /// One relay between a gateway and a supervisor, chosen by the gateway.
    ChannelId;
    /// One stream as its client and the operator see it, chosen by the gateway that accepted it.
    StreamId;
    /// One supervisor process, chosen by it at random.
    InstanceId;
    /// One gateway, chosen by its operator.
    GatewayId;
    /// One hop on a stream's path, as a person would name it.
    HopName;
}

/// The fencing token of one session: grows with every change of ownership.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Generation(u64);

impl Generation {
    /// Wraps a token issued by the directory.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The token as a number.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a sandbox: 1 to 253 letters, digits, `-`, `_` or `.`, beginning with a letter or digit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SandboxName(Arc<str>);

/// The text is no sandbox name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{given:?} is not a sandbox name: use 1 to 253 letters, digits, '-', '_' or '.', \
     beginning with a letter or digit"
)]
pub struct SandboxNameError {
    given: String,
}

impl SandboxName {
    /// The longest name.
    pub const MAX_LEN: usize = 253;

    /// Reads a name.
    ///
    /// # Errors
    ///
    /// When the text is empty, too long, or holds another character than those allowed.
    pub fn parse(text: &str) -> Result<Self, SandboxNameError> {
        let valid = (1..=Self::MAX_LEN).contains(&text.len())
            && text.as_bytes()[0].is_ascii_alphanumeric()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
        if valid {
            Ok(Self(text.into()))
        } else {
            Err(SandboxNameError {
                given: text.chars().take(64).collect(),
            })
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for SandboxName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SandboxName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_person_would_use_are_names_and_others_are_not() {
        for good in [
            "a",
            "local",
            "sbx-1.eu_west",
            "0b6f1c1e-9f0a-4a3e-8d53-3f4f3f2c9f11",
        ] {
            assert_eq!(SandboxName::parse(good).unwrap().as_str(), good);
        }
        let long = "x".repeat(SandboxName::MAX_LEN + 1);
        for bad in ["", "-a", ".a", "a b", "a/b", "ü", "a\n", &long] {
            assert!(SandboxName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
