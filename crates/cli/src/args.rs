//! The command line.

use std::path::PathBuf;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};

use crate::commands::{completions, connect, contexts, manual, sandboxes, sessions, streams};
use crate::failure::Failure;
use crate::output::{Colour, Console, Format};
use crate::settings;
use crate::{copy, exec, forward};

/// Carries TCP connections and commands into sandboxes that nothing can reach from outside.
#[derive(Debug, Parser)]
#[command(
    name = "tidegate",
    version,
    max_term_width = 100,
    infer_long_args = false,
    after_help = "Examples:\n  \
        tidegate dev                              # a gateway and a supervisor to play with\n  \
        tidegate port-forward local 8080:80       # 127.0.0.1:8080 -> port 80 in sandbox `local`\n  \
        tidegate exec -it local -- bash           # a shell in there\n  \
        tidegate connect local 22                 # stdin and stdout, as an ssh ProxyCommand\n  \
        tidegate context add work --gateway https://gateway.example.com:7070 --ca ca.crt\n\n\
        Options win over environment variables, these over contexts: see `tidegate context --help`."
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What every command understands, before or after its name.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The gateway, http:// or https://; repeat it for others of the same service
    /// [env: TIDEGATE_GATEWAY, separated by commas] [default: http://127.0.0.1:7070]
    #[arg(long, value_name = "URL", global = true, value_parser = settings::gateway_url)]
    pub(crate) gateway: Vec<String>,

    /// The context to use, in place of the current one [env: TIDEGATE_CONTEXT]
    #[arg(long, value_name = "NAME", global = true)]
    pub(crate) context: Option<String>,

    /// The authority of the gateway's certificate, PEM; by default the system's
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) ca: Option<PathBuf>,

    /// The certificate to show, PEM
    #[arg(long, value_name = "FILE", global = true, requires = "key")]
    pub(crate) cert: Option<PathBuf>,

    /// Its key, PEM
    #[arg(long, value_name = "FILE", global = true, requires = "cert")]
    pub(crate) key: Option<PathBuf>,

    /// A file with a bearer token, which is sent over TLS only [env: TIDEGATE_TOKEN, the token itself]
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) token_file: Option<PathBuf>,

    /// For whom the output is
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "text|json",
        global = true
    )]
    pub(crate) output: Format,

    /// Log to stderr: -v for decisions, -vv for libraries' too; RUST_LOG says it in detail
    #[arg(short, long, action = ArgAction::Count, global = true)]
    pub(crate) verbose: u8,

    /// When to use colours
    #[arg(
        long,
        value_enum,
        default_value_t,
        hide_possible_values = true,
        value_name = "auto|always|never",
        global = true
    )]
    pub(crate) color: Colour,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[cfg(all(unix, feature = "daemons"))]
    #[command(flatten)]
    Daemons(crate::daemons::Command),
    #[command(visible_alias = "forward")]
    PortForward(forward::Args),
    Connect(connect::Args),
    Exec(exec::Args),
    Cp(copy::Args),
    Sandboxes(sandboxes::Args),
    Sessions(sessions::Args),
    Streams(streams::Args),
    Context(contexts::Args),
    Completions(completions::Args),
    Man(manual::Args),
}

/// The whole command line, for help, completions and manuals.
pub(crate) fn command() -> clap::Command {
    Cli::command()
}

/// Whether this process's command line, which cannot be understood, is for `exec`.
pub(crate) fn is_exec() -> bool {
    let command = command().ignore_errors(true);
    let matches = command.try_get_matches();
    matches.is_ok_and(|matches| matches.subcommand_name() == Some("exec"))
}

/// Whether a line that cannot be understood asks for JSON all the same.
pub(crate) fn asks_for_json(args: &mut impl Iterator<Item = String>) -> bool {
    let mut named = false;
    for arg in args.take_while(|arg| arg != "--") {
        if arg == "--output=json" || named && arg == "json" {
            return true;
        }
        named = arg == "--output";
    }
    false
}

/// Does what was asked for.
pub(crate) async fn execute(cli: Cli, console: &Console) -> Result<(), Failure> {
    let global = &cli.global;
    match cli.command {
        #[cfg(all(unix, feature = "daemons"))]
        Command::Daemons(command) => crate::daemons::run(command, console).await,
        Command::PortForward(args) => forward::run(args, global, console).await,
        Command::Connect(args) => connect::run(&args, global, console).await,
        Command::Exec(args) => exec::run(args, global, console).await,
        Command::Cp(args) => copy::run(args, global, console).await,
        Command::Sandboxes(args) => sandboxes::run(args, global, console).await,
        Command::Sessions(args) => sessions::run(args, global, console).await,
        Command::Streams(args) => streams::run(args, global, console).await,
        Command::Context(args) => contexts::run(args, global, console),
        Command::Completions(args) => completions::run(&args, console),
        Command::Man(args) => manual::run(&args, console),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn global_options_stand_before_or_after_the_command() {
        for line in [
            ["tidegate", "--gateway", "http://a:1", "sandboxes"],
            ["tidegate", "sandboxes", "--gateway", "http://a:1"],
        ] {
            let cli = Cli::try_parse_from(line).unwrap();
            assert_eq!(cli.global.gateway, ["http://a:1"], "{line:?}");
        }
    }

    #[test]
    fn a_gateway_that_is_no_url_is_a_mistake_on_the_command_line() {
        let error = Cli::try_parse_from(["tidegate", "sandboxes", "--gateway", "ftp://x"]);
        let error = error.unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("http:// or https://"), "{error}");
    }

    #[test]
    fn a_line_that_is_a_mistake_may_ask_for_json() {
        let asks = |line: &str| asks_for_json(&mut line.split(' ').map(str::to_owned));
        assert!(asks("streams --output json --nonsense") && asks("--output=json nonsense"));
        assert!(!asks("streams --output text json") && !asks("x -- --output json"));
    }

    #[test]
    fn each_command_has_examples() {
        for command in command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let help = command.clone().render_long_help().to_string();
            assert!(help.contains("Example"), "{help}");
        }
    }
}
