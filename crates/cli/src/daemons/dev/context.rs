//! The context that is there and current while `tidegate dev` runs: `dev`, or `dev-2` beside another.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::failure::Failure;
use crate::settings::{Context, Contexts};

/// How long another one on this machine may take to accept.
const PATIENCE: Duration = Duration::from_millis(500);

/// A context of our own, and what was current before.
#[derive(Debug)]
pub(super) struct DevContext {
    name: String,
    url: String,
    before: Option<String>,
}

impl DevContext {
    /// Writes the context and makes it the current one.
    ///
    /// # Errors
    ///
    /// When the file of contexts cannot be read or written.
    pub(super) fn enter(url: &str) -> Result<Self, Failure> {
        Contexts::update(|contexts| Ok(Self::add(contexts, url, answers)))
    }

    /// Removes the context, unless it has become another's, and restores what was current.
    ///
    /// # Errors
    ///
    /// As [`enter`](Self::enter).
    pub(super) fn leave(self) -> Result<(), Failure> {
        Contexts::update(|contexts| {
            self.remove(contexts);
            Ok(())
        })
    }

    /// What it is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A note for people.
    pub(super) fn note(&self) -> String {
        match &self.before {
            None => "current: other commands need no flags".to_owned(),
            Some(before) => format!("current until this ends, then {before} again"),
        }
    }

    #[cfg(test)]
    pub(super) fn of_tests(url: &str) -> Self {
        Self::add(&mut Contexts::default(), url, |_| true)
    }

    fn add(contexts: &mut Contexts, url: &str, answers: impl Fn(&Context) -> bool) -> Self {
        let is_free = |name: &String| {
            let there = contexts.all.get(name);
            // One that was killed has left itself behind: nobody answers, or we have its address.
            there.is_none_or(|context| is_at(context, url) || !answers(context))
        };
        let names = (2_u64..).map(|number| format!("dev-{number}"));
        let mut names = std::iter::once("dev".to_owned()).chain(names);
        let name = names.find(is_free).unwrap_or_default();
        let context = Context {
            gateway: vec![url.to_owned()],
            ..Context::default()
        };
        let left = contexts.all.insert(name.clone(), context);
        let before = match contexts.current.replace(name.clone()) {
            Some(current) if current == name => left.and_then(|left| left.before),
            current => current,
        };
        if let Some(ours) = contexts.all.get_mut(&name) {
            ours.before.clone_from(&before);
        }
        Self {
            name,
            url: url.to_owned(),
            before,
        }
    }

    fn remove(&self, contexts: &mut Contexts) {
        let ours = contexts.all.get(&self.name);
        let Some(ours) = ours.filter(|context| is_at(context, &self.url)) else {
            return;
        };
        // Not `self.before`: that one may have ended since, and left us what was before it.
        let before = ours.before.clone();
        contexts.all.remove(&self.name);
        for later in contexts.all.values_mut() {
            if later.before.as_ref() == Some(&self.name) {
                later.before.clone_from(&before);
            }
        }
        if contexts.current.as_ref() == Some(&self.name) {
            contexts.current = before.filter(|name| contexts.all.contains_key(name));
        }
    }
}

fn is_at(context: &Context, url: &str) -> bool {
    context.gateway == [url]
}

/// Whether somebody listens where a context of ours leads: at an address of this machine.
fn answers(context: &Context) -> bool {
    let address = |url: &String| url.strip_prefix("http://")?.parse::<SocketAddr>().ok();
    match context.gateway.first().map(address) {
        Some(Some(address)) if address.ip().is_loopback() => {
            TcpStream::connect_timeout(&address, PATIENCE).is_ok()
        }
        // Somebody's own, made by hand.
        Some(_) => true,
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn current(contexts: &Contexts) -> Option<&str> {
        contexts.current.as_deref()
    }

    fn names(contexts: &Contexts) -> Vec<&str> {
        contexts.all.keys().map(String::as_str).collect()
    }

    fn with_mine() -> Contexts {
        let mut contexts = Contexts::default();
        contexts.all.insert("mine".to_owned(), Context::default());
        contexts.current = Some("mine".to_owned());
        contexts
    }

    #[test]
    fn a_second_one_leaves_the_first_as_it_was() {
        let mut contexts = Contexts::default();
        let first = DevContext::add(&mut contexts, "http://127.0.0.1:1", |_| true);
        let second = DevContext::add(&mut contexts, "http://127.0.0.1:2", |_| true);
        assert_eq!((first.name(), second.name()), ("dev", "dev-2"));
        assert_eq!(current(&contexts), Some("dev-2"));
        second.remove(&mut contexts);
        assert_eq!(names(&contexts), ["dev"]);
        assert_eq!(current(&contexts), Some("dev"));
        first.remove(&mut contexts);
        assert_eq!(contexts, Contexts::default());
    }

    #[test]
    fn the_first_may_end_first_and_what_was_current_is_not_forgotten() {
        let mut contexts = with_mine();
        let first = DevContext::add(&mut contexts, "http://127.0.0.1:1", |_| true);
        let second = DevContext::add(&mut contexts, "http://127.0.0.1:2", |_| true);
        first.remove(&mut contexts);
        assert_eq!(current(&contexts), Some("dev-2"));
        second.remove(&mut contexts);
        assert_eq!(contexts, with_mine());
    }

    #[test]
    fn one_that_was_killed_is_replaced_and_what_was_before_it_comes_back() {
        for (url, answers) in [("http://127.0.0.1:1", true), ("http://127.0.0.1:2", false)] {
            let mut contexts = with_mine();
            DevContext::add(&mut contexts, "http://127.0.0.1:1", |_| true);
            let again = DevContext::add(&mut contexts, url, |_| answers);
            assert_eq!(again.name(), "dev");
            again.remove(&mut contexts);
            assert_eq!(contexts, with_mine());
        }
    }

    #[test]
    fn one_that_has_become_anothers_stays() {
        let mut contexts = Contexts::default();
        let ours = DevContext::add(&mut contexts, "http://127.0.0.1:1", |_| true);
        let theirs = Context {
            gateway: vec!["http://127.0.0.1:2".to_owned()],
            ..Context::default()
        };
        contexts.all.insert("dev".to_owned(), theirs);
        ours.remove(&mut contexts);
        assert_eq!(names(&contexts), ["dev"]);
    }
}
