//! `tidegate cp`: files and folders into a sandbox and out of it, as a tar over a command.
//!
//! | module | what it does |
//! |---|---|
//! | `place` | reads `SANDBOX:PATH` (pure) |
//! | `down`, `unpack`, `settle` | out of a sandbox, which is not trusted |
//! | `up`, `pack` | into one |
//! | `channel` | bytes between a task and a thread that touches files |
//! | `progress` | how far it is |
//! | `modes` | permissions: the only module of this system alone |

mod channel;
mod down;
mod modes;
mod pack;
mod place;
mod progress;
mod settle;
mod unpack;
mod up;

use std::time::Duration;

use serde_json::json;
use tidegate_client::exec::{Command, Outcome};
use tidegate_client::{Client, SandboxName};
use tokio_util::task::TaskTracker;

use self::place::Place;
use crate::args::Global;
use crate::failure::{Failure, Trouble};
use crate::output::{Console, bytes, plain};
use crate::{settings, signals};

/// How long what was begun may take to be taken away again.
const CLEANUP: Duration = Duration::from_secs(2);

/// Copy files and folders into a sandbox, or out of it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tidegate cp local:/var/log/build.log .\n  \
    tidegate cp src local:/build              # /build/src if /build is there, else /build\n  \
    tidegate cp src/. local:/build            # what is in src, beside what is in /build\n  \
    tidegate cp local:/etc/nginx ./nginx\n\n\
    A file has its name only when all of it is there. Permissions and times are kept, owners are not:\n\
    whoever receives owns it. A sandbox cannot write beside the destination; links and devices that it\n\
    sends are left out, and named. It needs sh and tar in the sandbox.")]
pub(crate) struct Args {
    /// What to copy: PATH or SANDBOX:PATH
    source: Place,
    /// Where to: the other of both; a folder that is there receives the copy into it
    #[arg(value_name = "DEST")]
    destination: Place,
}

/// What was copied.
#[derive(Debug)]
struct Copied {
    files: u64,
    bytes: u64,
    left_out: Vec<String>,
    elapsed: Duration,
}

/// What a copy works with.
struct Copy<'a> {
    client: Client,
    console: &'a Console,
    /// The threads that touch files: what they have begun must be taken away before we go.
    threads: TaskTracker,
    /// To follow "cannot copy".
    what: String,
}

pub(crate) async fn run(args: Args, global: &Global, console: &Console) -> Result<(), Failure> {
    let Args {
        source,
        destination,
    } = args;
    let what = match &source {
        Place::Here(path) => plain(&path.display().to_string()),
        Place::There { sandbox, path } => format!("{sandbox}:{}", plain(path)),
    };
    let copy = Copy {
        client: settings::client(global)?,
        console,
        threads: TaskTracker::new(),
        what,
    };
    let copying = async {
        match (&source, &destination) {
            (Place::There { sandbox, path }, Place::Here(to)) => copy.down(sandbox, path, to).await,
            (Place::Here(from), Place::There { sandbox, path }) => {
                copy.up(from, sandbox, path).await
            }
            (Place::Here(_), Place::Here(_)) | (Place::There { .. }, Place::There { .. }) => {
                Err(Failure::settings(
                    "one of both must be in a sandbox, the other here",
                    "Write SANDBOX:PATH for the one in a sandbox.",
                ))
            }
        }
    };
    let copied = tokio::select! {
        copied = copying => copied,
        stopped = signals::told_to_stop() => Err(stopped),
    };
    copy.threads.close();
    // Who waits longer for a disk than that has pressed Ctrl-C for it.
    let _ = tokio::time::timeout(CLEANUP, copy.threads.wait()).await;
    copy.tell(copied?)
}

impl Copy<'_> {
    fn tell(&self, copied: Copied) -> Result<(), Failure> {
        let Copied {
            files, left_out, ..
        } = &copied;
        if self.console.is_json() {
            self.console.json(&json!({
                "files": files,
                "bytes": copied.bytes,
                "leftOut": left_out,
                "durationMs": u64::try_from(copied.elapsed.as_millis()).unwrap_or(u64::MAX),
            }))?;
        } else if self.console.shows_progress() {
            let size = bytes(copied.bytes);
            self.console
                .note(format_args!("{}: {files} files, {size}", self.what));
        }
        for one in left_out {
            self.console.note(format_args!("left out: {}", plain(one)));
        }
        if left_out.is_empty() {
            Ok(())
        } else {
            Err(Failure::Ended(1))
        }
    }

    /// Something is wrong with what was asked, or with the files.
    fn failed(&self, why: impl std::fmt::Display) -> Failure {
        Failure::local(
            Trouble::System,
            format!("cannot copy {}: {why}", self.what),
            "",
        )
    }

    /// The command in the sandbox did not do its part, and wrote `said`.
    fn refused(&self, sandbox: &SandboxName, outcome: Outcome, said: &[u8]) -> Failure {
        match outcome {
            Outcome::NotStarted(end) | Outcome::Lost(end) => {
                Failure::end(format!("copy {}", self.what), *end)
            }
            outcome => {
                let said = String::from_utf8_lossy(said);
                let said: Vec<_> = said
                    .lines()
                    .map(str::trim)
                    .filter(|it| !it.is_empty())
                    .collect();
                self.failed(match said.as_slice() {
                    [] => format!("tar in sandbox {sandbox} {outcome}"),
                    said => format!("sandbox {sandbox} says: {}", said.join("; ")),
                })
            }
        }
    }
}

/// A script for the sandbox, with its arguments.
fn script(text: &str, arguments: &[&str]) -> Command {
    let words = ["sh", "-c", text, "tidegate-cp"];
    Command {
        argv: words
            .iter()
            .chain(arguments)
            .map(|it| (*it).to_owned())
            .collect(),
        ..Command::default()
    }
}
