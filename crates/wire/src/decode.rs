//! What can be wrong with a message.

use thiserror::Error;

/// A message that says nothing usable. Those that name a field make a good INVALID_REQUEST.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The bytes are no protobuf message of that type.
    #[error("not a valid protobuf message")]
    Malformed,
    /// A field that must be set is not.
    #[error("field `{field}` is missing")]
    Missing {
        /// The field, as the `.proto` file calls it.
        field: &'static str,
    },
    /// A field holds what it must not.
    #[error("field `{field}`: {problem}")]
    Bad {
        /// The field, as the `.proto` file calls it.
        field: &'static str,
        /// What is wrong with it, for a person.
        problem: String,
    },
}

impl DecodeError {
    pub(crate) fn bad(field: &'static str, problem: impl ToString) -> Self {
        Self::Bad {
            field,
            problem: problem.to_string(),
        }
    }
}

impl From<prost::DecodeError> for DecodeError {
    fn from(_: prost::DecodeError) -> Self {
        Self::Malformed
    }
}

/// The text of a field that must not be empty.
pub(crate) fn required(field: &'static str, text: String) -> Result<String, DecodeError> {
    if text.is_empty() {
        Err(DecodeError::Missing { field })
    } else {
        Ok(text)
    }
}
