//! Who calls a unary method, as far as the call itself says.

use std::fmt;

use http::{Extensions, HeaderMap};

use crate::metadata;

/// What came with a call besides its message.
#[derive(Clone, Default)]
pub struct Caller {
    token: Option<String>,
    extensions: Extensions,
}

impl Caller {
    /// A caller with these headers, on a connection that left these extensions.
    pub fn new(headers: &HeaderMap, extensions: Extensions) -> Self {
        Self {
            token: metadata::bearer(headers).map(str::to_owned),
            extensions,
        }
    }

    /// The bearer token. Secret.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// What the transport knows about the connection, such as its other end.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extensions.get()
    }
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_token = self.token.is_some();
        f.debug_struct("Caller")
            .field("has_token", &has_token)
            .finish_non_exhaustive()
    }
}
