//! A runner whose small programs are the supervisor's binary, and words for what is asked of it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidegate_lifecycle::exec::{Command, Exit, Output, TerminalSize};
use tidegate_supervisor::runner::{Event, Events, Runner, RunnerConfig, Running, Scope};

/// Both ways to find descendants.
pub(crate) const SCOPES: [Scope; 2] = [Scope::Cgroup, Scope::Reaper];

pub(crate) fn config(scope: Scope) -> RunnerConfig {
    RunnerConfig {
        scope,
        binary: Some(PathBuf::from(env!("CARGO_BIN_EXE_tidegate-supervisor"))),
        ..RunnerConfig::default()
    }
}

pub(crate) fn runner(scope: Scope) -> Runner {
    Runner::new(config(scope)).unwrap()
}

pub(crate) fn argv(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().copied().map(str::to_owned).collect(),
        ..Command::default()
    }
}

pub(crate) fn sh(script: &str) -> Command {
    argv(&["sh", "-c", script])
}

pub(crate) fn on_terminal(command: Command, cols: u16, rows: u16) -> Command {
    Command {
        terminal: Some(TerminalSize { cols, rows }),
        ..command
    }
}

/// What a command wrote, and how it ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) exit: Exit,
    pub(crate) took: Duration,
}

impl Ran {
    #[track_caller]
    pub(crate) fn stdout(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

/// Reads until the end, and checks the numbers of what comes.
pub(crate) async fn collect(events: &mut Events) -> Ran {
    let begin = Instant::now();
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (mut sequences, mut last) = ([0, 0], 0);
    loop {
        match events.next().await.unwrap() {
            Event::Output {
                output,
                data,
                sequence,
                order,
            } => {
                assert!(!data.is_empty() && data.len() <= 64 * 1024);
                let expected = &mut sequences[output as usize];
                *expected += 1;
                last += 1;
                assert_eq!((sequence, order), (*expected, last));
                match output {
                    Output::Stdout => stdout.extend_from_slice(&data),
                    Output::Stderr => stderr.extend_from_slice(&data),
                }
            }
            Event::Exit(exit) => {
                assert_eq!(events.next().await, None);
                assert_eq!(exit.stdout.sent, stdout.len() as u64);
                assert_eq!(exit.stderr.sent, stderr.len() as u64);
                return Ran {
                    stdout,
                    stderr,
                    exit,
                    took: begin.elapsed(),
                };
            }
        }
    }
}

/// Runs a command without input.
pub(crate) async fn run(runner: &Runner, command: Command) -> Ran {
    let mut running = runner.start(command).await.unwrap();
    running.close_stdin().await;
    finish(running).await
}

/// Reads until the end, input untouched.
pub(crate) async fn finish(running: Running) -> Ran {
    let (_control, _stdin, mut events) = running.split();
    collect(&mut events).await
}

/// Runs a command, and writes and reads at the same time.
pub(crate) async fn feed(runner: &Runner, command: Command, input: Bytes) -> Ran {
    let (_control, mut stdin, mut events) = runner.start(command).await.unwrap().split();
    let write = async {
        stdin.write(input).await;
        stdin.close().await;
    };
    tokio::join!(write, collect(&mut events)).1
}

/// Reads until the output contains `text`; returns all of it.
pub(crate) async fn wait_for(events: &mut Events, text: &str) -> String {
    let mut seen = String::new();
    let read = async {
        while !seen.contains(text) {
            match events.next().await {
                Some(Event::Output { data, .. }) => seen.push_str(&String::from_utf8_lossy(&data)),
                other => panic!("{other:?} after {seen:?}"),
            }
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(5), read).await;
    assert!(read.is_ok(), "{text:?} is not in {seen:?}");
    seen
}

/// The processes whose command line is `sleep` and this number: tests use numbers of their own.
pub(crate) fn sleepers(number: &str) -> usize {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    let expected = format!("sleep\0{number}\0");
    lines.filter(|line| *line == expected.as_bytes()).count()
}

/// Waits until something is so; fails after `patience`.
pub(crate) async fn eventually(patience: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + patience;
    while !is_so() {
        assert!(Instant::now() < deadline, "not within {patience:?}: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The states of this process's children.
pub(crate) fn zombies() -> usize {
    let own = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|it| std::fs::read_to_string(it.path().join("stat")).ok());
    let mut fields = stats.filter_map(|stat| {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_ascii_whitespace();
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    });
    let is_ours = |(state, parent): &(String, String)| state == "Z" && *parent == own;
    fields.by_ref().filter(is_ours).count()
}

/// Files that this process has open.
pub(crate) fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
