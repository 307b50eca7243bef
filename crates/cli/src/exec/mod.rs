//! `tidegate exec`: a command in a sandbox, as if it ran here.
//!
//! | module | what it does |
//! |---|---|
//! | `variables` | `-e` and `--env-file` (pure) |
//! | `session` | moves what is typed, signalled and written while the command runs |
//! | `escape` | finds `~.` in what is typed (pure) |
//! | `terminal` | raw mode and the window's size: the only module of this system alone |
//! | `report` | what the end means: exit code, sentence, JSON |

mod escape;
mod report;
mod session;
mod terminal;
mod variables;

use std::path::PathBuf;

use tidegate_client::exec::Command;
use tidegate_client::{Dur, SandboxName, Size};

use self::escape::Escape;
use self::report::Report;
use self::session::Session;
use crate::args::Global;
use crate::failure::Failure;
use crate::output::Console;
use crate::settings;
use crate::signals::{Signal, Signals};

/// What each output may have in JSON unless it is said: it is held in memory.
const JSON_LIMIT: Size = Size::mib(16);

/// The exit code of every failure of ours.
const OURS: i32 = 125;

/// Run a command in a sandbox, and exit as it does
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tidegate exec local -- uname -a\n  \
    tidegate exec -it local -- bash           # a shell on a terminal; ~. gets out of a dead one\n  \
    tar c . | tidegate exec -i -w /src local -- tar x\n  \
    tidegate exec --timeout 10m -e CI=1 local -- make test\n  \
    tidegate exec --output json local -- sh -c 'echo hi' | jq -r .stdout\n\n\
    The command is a program and its arguments: no shell reads them unless it is one. Exit codes: the\n\
    command's own; 128 and the signal's number; 124 when its --timeout was over; 127 not found, 126 not\n\
    executable; 125 for every failure on the way to it; 130 when you end it. Ctrl-C interrupts the\n\
    command, twice ends it with all that it has started. So does every other way to leave before it has\n\
    ended. Processes that it leaves behind when it ends by itself stay, unless --kill-background.")]
pub(crate) struct Args {
    /// Send stdin to the command; without it the command sees an empty one
    #[arg(short, long)]
    interactive: bool,

    /// Run it on a terminal of its own, whose one output is stdout
    #[arg(short, long)]
    tty: bool,

    /// Set a variable; repeat it for others
    #[arg(short, long, value_name = "KEY=VALUE", value_parser = variables::parse)]
    env: Vec<(String, String)>,

    /// Read variables from a file, one KEY=VALUE a line; -e wins over it
    #[arg(long, value_name = "FILE")]
    env_file: Vec<PathBuf>,

    /// Where it starts
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<String>,

    /// How long it may run
    #[arg(long, value_name = "DUR")]
    timeout: Option<Dur>,

    /// How long it has between TERM and KILL when it is made to end [default: the supervisor's, 2s]
    #[arg(long, value_name = "DUR")]
    kill_grace: Option<Dur>,

    /// End the processes that it leaves behind, too
    #[arg(long)]
    kill_background: bool,

    /// The most bytes of stdout to send; the rest is counted and dropped
    /// [default: unlimited, 16MiB with --output json]
    #[arg(long, value_name = "SIZE")]
    stdout_limit: Option<Size>,

    /// The same for stderr
    #[arg(long, value_name = "SIZE")]
    stderr_limit: Option<Size>,

    /// What begins `~.` at the start of a line of a terminal, which ends the session; or `none`
    #[arg(long, value_name = "CHAR", default_value = "~")]
    escape_char: Escape,

    /// Which sandbox
    #[arg(value_parser = SandboxName::parse)]
    sandbox: SandboxName,

    /// The program and its arguments
    #[arg(value_name = "COMMAND", required = true, last = true)]
    command: Vec<String>,
}

pub(crate) async fn run(args: Args, global: &Global, console: &Console) -> Result<(), Failure> {
    let code = match execute(&args, global, console).await {
        Ok(code) => code,
        Err(failure) => {
            console.failure(&failure)?;
            code_of(&failure)
        }
    };
    match code {
        0 => Ok(()),
        code => Err(Failure::Ended(code)),
    }
}

/// The exit code of a command line for `exec` that cannot be understood: 2 may be the command's.
pub(crate) const fn misused() -> i32 {
    OURS
}

const fn code_of(failure: &Failure) -> i32 {
    match failure {
        Failure::End { end, .. } => report::code_of(end.reason),
        Failure::Stopped(code) | Failure::Ended(code) => *code,
        Failure::Local(_) | Failure::OutputClosed | Failure::Said => OURS,
    }
}

async fn execute(args: &Args, global: &Global, console: &Console) -> Result<i32, Failure> {
    let report = Report::new(args, console);
    let mut signals = Signals::listen()?;
    let command = command(args, console)?;
    let client = settings::client(global)?;
    let opening = async {
        let exec = client.exec(&args.sandbox, command).await;
        let mut exec = exec.map_err(|end| report.not_started(end))?;
        if !args.interactive && !args.tty {
            exec.input().close();
        }
        let started = exec.started().await.cloned();
        let started = started.map_err(|end| report.not_started(end))?;
        Ok((exec, started))
    };
    let (exec, started) = tokio::select! {
        opened = opening => opened?,
        // Nothing runs that could be interrupted.
        code = stopped(&mut signals) => return Err(Failure::Stopped(code)),
    };
    let session = Session::new(args, &started, signals, console)?;
    if console.is_json() {
        return report.collected(session.collect(exec, limit(args)).await?, &started);
    }
    report.ended(session.show(exec).await?)
}

/// Waits for the first signal that ends a program.
async fn stopped(signals: &mut Signals) -> i32 {
    loop {
        match signals.next().await {
            Signal::Interrupt | Signal::Quit => return 130,
            Signal::Terminate => return 143,
            Signal::Hangup => return 129,
            Signal::Resized | Signal::Continued => {}
        }
    }
}

fn command(args: &Args, console: &Console) -> Result<Command, Failure> {
    let terminal = args.tty.then(|| terminal::size().unwrap_or_default());
    let default_limit = console.is_json().then_some(JSON_LIMIT);
    let limit = |asked: Option<Size>| asked.or(default_limit).map(|size| size.0);
    Ok(Command {
        argv: args.command.clone(),
        workdir: args.workdir.clone(),
        environment: variables::all(args)?,
        terminal,
        timeout: args.timeout.map(|it| it.0),
        kill_grace: args.kill_grace.map(|it| it.0),
        kill_background: args.kill_background,
        stdout_limit: limit(args.stdout_limit),
        stderr_limit: if args.tty && args.stderr_limit.is_none() {
            None
        } else {
            limit(args.stderr_limit)
        },
    })
}

/// How much of each output is held in memory.
fn limit(args: &Args) -> usize {
    let most = [args.stdout_limit, args.stderr_limit];
    let most = most.map(|limit| limit.unwrap_or(JSON_LIMIT).bytes());
    most[0].max(most[1])
}
