//! One process, from its start to its end.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail};
use tokio::process::{Child, ChildStdin, Command};

use super::output::Output;
use crate::bounded::{SHORT, within};
use crate::programs;
use crate::worker::Worker;

/// A running process. Dropping it kills it.
pub(crate) struct Process {
    name: String,
    pid: u32,
    child: Child,
    output: Output,
    /// Apart from `child`, which would close it while it waits for the end.
    _stdin: Option<ChildStdin>,
}

impl Process {
    /// Starts `program`. Its standard input stays open for as long as this value lives.
    pub(crate) fn start<S: AsRef<OsStr>>(
        name: &str,
        program: &Path,
        arguments: impl IntoIterator<Item = S>,
        home: &Path,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments);
        isolate(&mut command, home);
        if !programs::is_ours(name) {
            command.env("RUST_LOG", "warn"); // or others pay for a line per connection
        }
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("starting {name} ({})", program.display()))?;
        let pid = child.id().context("a process without an id")?;
        let output = Output::collect(child.stdout.take(), child.stderr.take());
        let stdin = child.stdin.take();
        Ok(Self {
            name: name.to_owned(),
            pid,
            child,
            output,
            _stdin: stdin,
        })
    }

    /// Starts this executable again as `worker` and waits until it is ready.
    pub(crate) async fn start_worker(worker: &Worker, home: &Path) -> Result<(Self, String)> {
        let own = std::env::current_exe().context("finding this executable")?;
        let mut process = Self::start(worker.name(), &own, worker.arguments(), home)?;
        let ready = |line: &str| line.strip_prefix("ready ").map(str::to_owned);
        let answer = process.wait_for_line("its ready line", ready).await?;
        Ok((process, answer))
    }

    /// Waits for a line in which `find` finds what it looks for.
    pub(crate) async fn wait_for_line<T>(
        &mut self,
        what: &str,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        let what = format!("{}: waiting for {what}", self.name);
        let found = within(what, SHORT, self.next_match(find)).await;
        found.map_err(|error| anyhow!("{error:#}\n{}", self.last_words()))
    }

    async fn next_match<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> Result<T> {
        loop {
            let changed = self.output.changed();
            if let Some(found) = self.output.find(&find) {
                return Ok(found);
            }
            tokio::select! {
                () = changed => {}
                status = self.child.wait() => bail!("it ended ({})", status?),
            }
        }
    }

    /// The process id.
    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// What the process printed last: the first thing to read when something failed.
    pub(crate) fn last_words(&self) -> String {
        format!(
            "{} (pid {}) printed last:\n{}",
            self.name,
            self.pid,
            self.output.tail()
        )
    }
}

/// Nobody's settings, proxies or colours: a run depends on this machine only.
fn isolate(command: &mut Command, home: &Path) {
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("TIDEGATE_") || name.to_ascii_lowercase().ends_with("_proxy") {
            command.env_remove(name.as_ref());
        }
    }
    command
        .env("HOME", home)
        .env("XDG_CONFIG_HOME", home)
        .env("NO_COLOR", "1");
    command
        .env_remove("RUST_LOG")
        .env_remove("RUST_BACKTRACE")
        .current_dir(home);
}
