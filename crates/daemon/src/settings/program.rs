//! The command line, made from the table of keys.

use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write as _;
use std::path::PathBuf;

use clap::builder::ArgAction;
use clap::error::ErrorKind;
use clap::{Arg, Command, value_parser};

use super::table::flag;
use super::{Arity, ConfigError, Key, Layers};

/// A program whose settings are a table.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// What it is called.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Command lines to start from, each a line.
    pub examples: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// What was said to a program when it was started.
#[derive(Debug)]
pub struct Said {
    /// What was set.
    pub layers: Layers,
    /// Whether the configuration is to be printed, and nothing else done.
    pub print: bool,
    /// How often `-v` was given.
    pub verbosity: u8,
}

impl Program {
    /// Listens to the command line, the environment that `variable` knows, and the file that either
    /// names. Ends the process by itself after `--help`, `--version` and what it does not understand.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or holds a key that nobody knows.
    pub fn listen(
        &self,
        args: impl IntoIterator<Item = OsString>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Said, ConfigError> {
        let flags = self.command().get_matches_from(args);
        Ok(Said {
            layers: Layers::gather(self, &flags, variable)?,
            print: flags.get_flag("print-config"),
            verbosity: flags.get_count("verbose"),
        })
    }

    /// Says why what was set cannot be used, be it on the command line, in the environment, in the
    /// configuration file or in a file that these name, and ends the process with 2: to start it
    /// again would change nothing.
    pub fn refuse(&self, error: impl Display) -> ! {
        self.command()
            .error(ErrorKind::ValueValidation, error)
            .exit()
    }

    /// Says why the machine does not let the program start, and ends the process with 1: to start it
    /// again may help.
    pub fn fail(&self, error: impl Display) -> ! {
        // Nobody is left to be told if this fails.
        let _ = writeln!(std::io::stderr(), "error: {error}");
        std::process::exit(1)
    }

    /// The whole configuration as TOML, and behind each value where it came from. It can be used as
    /// a configuration file, but for secrets, which it leaves out.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] names a key whose value cannot be used.
    pub fn page(&self, layers: &Layers) -> Result<String, ConfigError> {
        self.keys.iter().map(|key| key.line(layers)).collect()
    }

    /// The command line.
    pub fn command(&self) -> Command {
        Command::new(self.name)
            .about(self.about)
            .version(env!("CARGO_PKG_VERSION"))
            .after_help(format!(
                "Every option is also a key of the configuration file (dashes become underscores) \
                 and an environment variable (TIDEGATE_...). An option wins over the environment, \
                 the environment over the file.\n\nExamples:\n{}",
                self.examples
            ))
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
                    .help(
                        "Prints the whole configuration and where each value came from, and exits",
                    ),
            )
            .arg(
                Arg::new("verbose")
                    .short('v')
                    .long("verbose")
                    .action(ArgAction::Count)
                    .help(
                        "Logs more: -v each decision, -vv also what the libraries do. RUST_LOG says it in \
                         detail",
                    ),
            )
            .args(self.keys.iter().map(option))
    }
}

fn option(key: &'static Key) -> Arg {
    let help = match key.default {
        None | Some("") => key.help.trim().to_owned(),
        Some(default) => format!("{} [default: {default}]", key.help.trim()),
    };
    let arg = Arg::new(key.name)
        .long(flag(key.name))
        .value_name(key.kind)
        .help(help);
    match key.arity {
        Arity::One => arg.action(ArgAction::Set),
        Arity::List => arg
            .action(ArgAction::Append)
            .value_name(format!("{},...", key.kind)),
        Arity::Switch => arg
            .action(ArgAction::Set)
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("true"),
    }
}
