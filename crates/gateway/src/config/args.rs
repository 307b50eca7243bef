//! The command line, made from the table of keys.

use std::path::PathBuf;

use clap::builder::ArgAction;
use clap::{Arg, Command, value_parser};

use super::{Config, Key};

/// The command line of `tidegate-gateway`.
pub fn command() -> Command {
    Command::new("tidegate-gateway")
        .about("Accepts clients and supervisors and carries streams between them")
        .version(env!("CARGO_PKG_VERSION"))
        .after_help(
            "Every option is also a key of the configuration file (dashes become underscores) and \
             an environment variable (TIDEGATE_...). An option wins over the environment, the \
             environment over the file.\n\nExamples:\n  \
             tidegate-gateway --listen 127.0.0.1:7070 --insecure-dev\n  \
             tidegate-gateway --config /etc/tidegate/gateway.toml --print-config",
        )
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Reads this TOML file [env: TIDEGATE_CONFIG]"),
        )
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Prints the whole configuration and where each value came from, and exits"),
        )
        .arg(
            Arg::new("verbose")
                .short('v')
                .long("verbose")
                .action(ArgAction::Count)
                .help("Logs more: -v each decision, -vv each frame. RUST_LOG says it in detail"),
        )
        .args(Config::KEYS.iter().map(option))
}

fn option(key: &'static Key) -> Arg {
    let help = match key.default {
        "" => key.help.trim().to_owned(),
        default => format!("{} [default: {default}]", key.help.trim()),
    };
    let arg = Arg::new(key.name)
        .long(key.name.replace('_', "-"))
        .value_name(key.kind)
        .action(ArgAction::Append)
        .help(help);
    match key.default {
        "true" | "false" => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
        _ => arg,
    }
}
