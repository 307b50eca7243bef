//! Commands: what their callers learn, what they get, and what is left of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod balanced;
mod conversation;
mod ending;
mod legacy;
mod logs;
mod lost;
mod output;
mod results;
mod screen;
mod session;
mod stdin;
mod terminal;
mod unstarted;

use std::fs;
use std::path::Path;
use std::process::Command as Process;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tidegate_client::exec::{Collected, Command, Exec, Outcome};
use tidegate_client::{Client, End, SandboxName};
use tidegate_e2e::command::{self, Finished, Running};
use tidegate_e2e::{SANDBOX, World};
use tidegate_testkit::fault_proxy::Ending;
use tidegate_testkit::wait::{self, within};

/// How long what ends by itself may take, on a machine that does other things too.
const MOMENT: Duration = Duration::from_secs(10);
/// How long a tree of processes may live on when its command has to end.
const GONE: Duration = Duration::from_secs(5);
/// More than any output here that is collected.
const ALL: usize = 256 << 20;

/// What a supervisor warns of when its session has ended, and when there is none yet.
const ENDED: &str = "session ended, dialling again";
const NONE_YET: &str = "no session, trying again";

fn sandbox() -> SandboxName {
    SandboxName::parse(SANDBOX).unwrap()
}

/// A command for the SDK.
fn argv(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        ..Command::default()
    }
}

/// A script for the SDK.
fn script(script: &str) -> Command {
    argv(&["sh", "-c", script])
}

/// Starts a command with the SDK and waits until it runs.
async fn start(client: &Client, command: Command) -> Exec {
    let mut exec = client.exec(&sandbox(), command).await.unwrap();
    within(MOMENT, "the command to run", exec.started())
        .await
        .unwrap();
    exec
}

/// Runs a command with the SDK, without stdin, and keeps all it writes.
async fn run(client: &Client, command: Command) -> Collected {
    let mut exec = client.exec(&sandbox(), command).await.unwrap();
    within(wait::GENEROUS, "the command's end", exec.collect(ALL)).await
}

/// Why a command does not start.
async fn refused(client: &Client, command: Command) -> End {
    let mut exec = match client.exec(&sandbox(), command).await {
        Ok(exec) => exec,
        Err(end) => return end,
    };
    let started = within(wait::GENEROUS, "a refusal", exec.started()).await;
    started.map(|_| ()).unwrap_err()
}

/// `tidegate exec` of this world.
fn cli(world: &World, flags: &[&str], argv: &[&str]) -> Process {
    command::exec(&world.access(), flags, argv)
}

/// Runs `tidegate exec` with an empty stdin.
async fn ran(world: &World, flags: &[&str], argv: &[&str]) -> Finished {
    Running::start(cli(world, flags, argv)).finish(MOMENT).await
}

/// Runs `tidegate exec -i` with this stdin.
async fn fed(world: &World, stdin: impl Into<Vec<u8>>, argv: &[&str]) -> Finished {
    let running = Running::fed(cli(world, &["-i"], argv), stdin.into());
    running.finish(wait::GENEROUS).await
}

/// Gives a command `half` of its stdin, which it keeps in `file`, and goes away: by a cancel, or with
/// the way to the gateway that the world has a proxy on.
async fn cut_in_half(
    world: &World,
    exec: &mut Exec,
    half: impl Into<Bytes>,
    file: &Path,
    lost: bool,
) -> Outcome {
    let half = half.into();
    let len = half.len() as u64;
    exec.input().write(half).await.unwrap();
    let arrived = wait::until_async(MOMENT, async || {
        fs::metadata(file).is_ok_and(|it| it.len() == len)
    });
    arrived.await.unwrap();
    if lost {
        world.client_proxy().end_all(Ending::Reset);
    } else {
        exec.cancel();
    }
    within(MOMENT, "the end", exec.wait()).await
}

/// A time to sleep that no other process on this machine sleeps: so it can be found.
fn long_sleep() -> String {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    format!("300.{:07}{call:04}", std::process::id())
}

/// How many processes sleep `time`.
fn sleepers(time: &str) -> usize {
    let is_one = |entry: fs::DirEntry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.next().is_some_and(|word| word.ends_with(b"sleep"))
            && words.next() == Some(time.as_bytes())
    };
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries.map(is_one).filter(|&found| found).count()
}

/// Waits until `count` processes sleep `time`.
async fn until_sleepers(time: &str, count: usize, bound: Duration) {
    let mut seen = 0;
    let reached = wait::until_async(bound, async || {
        seen = sleepers(time);
        seen == count
    });
    assert!(
        reached.await.is_ok(),
        "{seen} processes sleep {time} after {bound:?}, not {count}"
    );
}
