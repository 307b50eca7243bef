//! The context `dev`, which is there and current while `tidegate dev` runs.

use crate::failure::Failure;
use crate::settings::{Context, Contexts};

/// The context, and what was current before.
#[derive(Debug)]
pub(super) struct DevContext {
    url: String,
    before: Option<String>,
}

impl DevContext {
    /// What it is called.
    pub(super) const NAME: &str = "dev";

    /// Writes the context and makes it the current one.
    ///
    /// # Errors
    ///
    /// When the file of contexts cannot be read or written.
    pub(super) fn enter(url: &str) -> Result<Self, Failure> {
        Contexts::update(|contexts| {
            let context = Context {
                gateway: vec![url.to_owned()],
                ..Context::default()
            };
            contexts.all.insert(Self::NAME.to_owned(), context);
            let before = contexts.current.replace(Self::NAME.to_owned());
            Ok(Self {
                url: url.to_owned(),
                // One that was killed has left itself behind.
                before: before.filter(|name| name != Self::NAME),
            })
        })
    }

    /// A note for people.
    pub(super) fn note(&self) -> String {
        match &self.before {
            None => "current: other commands need no flags".to_owned(),
            Some(before) => format!("current until this ends, then {before} again"),
        }
    }

    /// Removes the context, unless it has become another's, and restores what was current.
    ///
    /// # Errors
    ///
    /// As [`enter`](Self::enter).
    pub(super) fn leave(self) -> Result<(), Failure> {
        Contexts::update(|contexts| {
            let ours = |context: &Context| context.gateway == [self.url.as_str()];
            if !contexts.all.get(Self::NAME).is_some_and(ours) {
                return Ok(());
            }
            contexts.all.remove(Self::NAME);
            if contexts.current.as_deref() == Some(Self::NAME) {
                let still_there = |name: &String| contexts.all.contains_key(name);
                contexts.current = self.before.filter(still_there);
            }
            Ok(())
        })
    }
}
