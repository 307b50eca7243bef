//! The command `tidegate`: arguments and printing around the SDK.
//!
//! | module | what it does |
//! |---|---|
//! | `args` | the command line |
//! | `settings` | which gateway is meant: flags, environment, contexts in a file |
//! | `commands` | the commands that ask once and answer |
//! | `forward` | `port-forward`: listeners, connections, outages |
//! | `exec` | `exec`: a command, its terminal and its exit code |
//! | `copy` | `cp`: files and folders, as a tar over a command |
//! | `daemons` | `dev` and `demo`, which run gateways and supervisors: the only module of this system alone |
//! | `output` | tables, JSON, colours; nothing else writes to stdout or stderr |
//! | `failure`, `remedy` | what is said when it did not work, and what to do |
//!
//! What must not happen here: deciding how a stream ends. The SDK says it; this crate prints it.

mod args;
mod commands;
mod copy;
#[cfg(all(unix, feature = "daemons"))]
mod daemons;
mod exec;
mod failure;
mod forward;
mod logs;
mod output;
mod remedy;
mod settings;
mod signals;

use std::io::Write;
use std::process::exit;

use clap::Parser;

use crate::args::Cli;
use crate::failure::Failure;
use crate::output::{Colour, Console, Format};

/// Does what the command line says, and ends the process.
///
/// | exit code | |
/// |---|---|
/// | 0 | done |
/// | 1 | it failed, and the sentence on stderr says why |
/// | 2 | the command line cannot be understood |
/// | 130, 143 | ended by Ctrl-C, by SIGTERM |
///
/// `exec` exits as its command does, and with 125 where others do with 1 or 2.
pub fn run() -> ! {
    #[cfg(all(unix, feature = "daemons"))]
    daemons::enter();
    let cli = Cli::try_parse().unwrap_or_else(|error| misunderstood(&error));
    logs::init(cli.global.verbose);
    let console = Console::new(cli.global.output, cli.global.color);
    let code = match block_on(args::execute(cli, &console)) {
        Ok(()) => 0,
        Err(failure) => report(&failure, &console),
    };
    // Nobody is left to tell if this fails.
    let _ = std::io::stdout().flush();
    // Not by way of dropping everything: a thread that reads stdin would be waited for.
    exit(code)
}

/// Runs on this thread alone: a relay and its connection wake each other for every frame, and a
/// wake that crosses threads costs as much as the copy.
fn block_on(command: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::io("start", error))?;
    let outcome = runtime.block_on(command);
    runtime.shutdown_background();
    outcome
}

/// Says what is wrong with the command line, to a program as an object; or shows help.
fn misunderstood(error: &clap::Error) -> ! {
    let mut args = std::env::args_os()
        .skip(1)
        .map_while(|arg| arg.into_string().ok());
    if !error.use_stderr() {
        error.exit();
    }
    if args::asks_for_json(&mut args) {
        let text = error.render().to_string();
        let sentence = text.lines().next().unwrap_or_default();
        let failure = Failure::settings(sentence.trim_start_matches("error: "), "");
        // What cannot be written cannot be reported either, here and below.
        let _ = Console::new(Format::Json, Colour::Never).failure(&failure);
    } else {
        let _ = error.print();
    }
    if args::is_exec() {
        exit(exec::misused());
    }
    exit(error.exit_code())
}

fn report(failure: &Failure, console: &Console) -> i32 {
    // What cannot be written cannot be reported either.
    let _ = console.failure(failure);
    failure.exit_code()
}
