//! `tidegate context`

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};
use tidegate_client::Config;

use crate::args::Global;
use crate::failure::Failure;
use crate::output::{Cell, Console, Style, Table};
use crate::settings::{Context, Contexts, client_of, named_gateways};

/// Remember gateways by name, with what proves who you are there
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
    tidegate context add work --gateway https://gateway.example.com:7070 \\\n      \
        --ca gateway-ca.crt --cert me.crt --key me.key\n  \
    tidegate context use work\n  \
    tidegate context list\n\n\
    Contexts are kept in tidegate/config.toml below $XDG_CONFIG_HOME, or ~/.config.\n\
    A gateway that --gateway or TIDEGATE_GATEWAY names is used without the current context."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Add a context from --gateway, --ca, --cert, --key and --token-file, or replace it
    ///
    /// The first one becomes the current one.
    Add {
        /// What to call it
        name: String,
    },
    /// Make a context the current one
    Use {
        /// Which one
        name: String,
    },
    /// List the contexts
    List,
    /// Remove a context
    Remove {
        /// Which one
        name: String,
    },
}

pub(crate) fn run(args: Args, global: &Global, console: &Console) -> Result<(), Failure> {
    match args.command {
        Command::Add { name } => add(name, global, console),
        Command::Use { name } => switch(&name, console),
        Command::List => list(&Contexts::load()?, console),
        Command::Remove { name } => remove(&name, console),
    }
}

fn add(name: String, global: &Global, console: &Console) -> Result<(), Failure> {
    if !is_name(&name) {
        let sentence = format!("{name:?} is no name for a context");
        let remedy = "Use letters, digits, `-`, `_` and `.`, such as `work`.";
        return Err(Failure::settings(sentence, remedy));
    }
    let context = Context {
        gateway: named_gateways(global),
        ca: absolute(global.ca.as_deref())?,
        cert: absolute(global.cert.as_deref())?,
        key: absolute(global.key.as_deref())?,
        token_file: absolute(global.token_file.as_deref())?,
        before: None,
    };
    check(&context)?;
    let (left, current) = Contexts::update(|contexts| {
        let left = contexts.all.insert(name.clone(), context);
        let current = contexts.current.get_or_insert_with(|| name.clone());
        Ok((left, current.clone()))
    })?;
    let done = left.map_or("added", |_| "replaced");
    let is_current = current == name;
    let note = if is_current {
        "it is the current one".to_owned()
    } else {
        format!("the current one is still {current}")
    };
    told(
        &name,
        is_current,
        format_args!("Context {name} is {done}; {note}."),
        console,
    )
}

/// Whether it can be written in a shell and in a list without a second thought.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.starts_with(char::is_alphanumeric) && name.chars().all(is_plain)
}

/// Finds mistakes when a context is made and not when it is first needed.
fn check(context: &Context) -> Result<(), Failure> {
    let config = Config {
        gateways: context.gateway.clone(),
        ca: context.ca.clone(),
        cert: context.cert.clone(),
        key: context.key.clone(),
        token: None,
    };
    client_of(&config).map(|_| ())
}

/// Where the file lies, from wherever it will be looked for.
fn absolute(path: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    let path = path.map(std::path::absolute).transpose();
    path.map_err(|error| Failure::io("tell the current folder", error))
}

fn switch(name: &str, console: &Console) -> Result<(), Failure> {
    Contexts::update(|contexts| {
        known(contexts, name)?;
        contexts.current = Some(name.to_owned());
        Ok(())
    })?;
    told(
        name,
        true,
        format_args!("Context {name} is the current one."),
        console,
    )
}

fn remove(name: &str, console: &Console) -> Result<(), Failure> {
    let was_current = Contexts::update(|contexts| {
        known(contexts, name)?;
        contexts.all.remove(name);
        Ok(contexts
            .current
            .take_if(|current| current == name)
            .is_some())
    })?;
    let note = if was_current {
        "; none is the current one now"
    } else {
        ""
    };
    told(
        name,
        false,
        format_args!("Context {name} is removed{note}."),
        console,
    )
}

fn known(contexts: &Contexts, name: &str) -> Result<(), Failure> {
    if contexts.all.contains_key(name) {
        return Ok(());
    }
    let sentence = format!("there is no context {name:?}");
    Err(Failure::settings(
        sentence,
        "`tidegate context list` shows those that there are.",
    ))
}

fn told(
    name: &str,
    current: bool,
    sentence: impl std::fmt::Display,
    console: &Console,
) -> Result<(), Failure> {
    if console.is_json() {
        console.json(&json!({ "name": name, "current": current }))
    } else {
        console.line(sentence)
    }
}

fn list(contexts: &Contexts, console: &Console) -> Result<(), Failure> {
    let is_current = |name: &str| contexts.current.as_deref() == Some(name);
    if console.is_json() {
        let all = contexts.all.iter();
        let all = all.map(|(name, context)| object(name, context, is_current(name)));
        return console.json(&all.collect::<Vec<_>>());
    }
    let mut table = Table::new(["CURRENT", "NAME", "GATEWAY", "CERTIFICATE"]);
    for (name, context) in &contexts.all {
        let mark = if is_current(name) { "*" } else { "" };
        let cert = context.cert.as_ref();
        table.row([
            Cell::painted(mark.to_owned(), Style::green),
            name.as_str().into(),
            context.gateway.join(",").into(),
            cert.map_or_else(|| "-".to_owned(), |path| path.display().to_string())
                .into(),
        ]);
    }
    console.line(table.render(console.style()))
}

fn object(name: &str, context: &Context, current: bool) -> Value {
    json!({
        "name": name,
        "current": current,
        "gateways": context.gateway,
        "ca": context.ca,
        "cert": context.cert,
        "key": context.key,
        "tokenFile": context.token_file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_word() {
        assert!(["work", "dev-2", "a.b_c", "büro"].into_iter().all(is_name));
        assert!(
            !["", "bad name", "../x", "-x", "a\n"]
                .into_iter()
                .any(is_name)
        );
    }
}
