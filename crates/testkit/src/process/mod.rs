//! Real programs under test: started, watched, signalled, and never left behind.

mod binary;
mod output;
mod terminal;

use std::{
    fmt, io,
    net::SocketAddr,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    sync::Mutex,
    time::Duration,
};

use rustix::process::{Pid, kill_process, kill_process_group};

pub use rustix::process::Signal;

pub use self::{
    binary::{BinaryNotFound, binary},
    output::Output,
    terminal::Terminal,
};
use crate::wait;

/// A running program in a process group of its own; dropping it kills the whole group.
#[derive(Debug)]
pub struct Process {
    name: String,
    pid: Pid,
    child: Mutex<Child>,
    stdout: Output,
    stderr: Output,
}

impl Process {
    /// Starts `command`; its output is collected, its standard input is what `command` says, else
    /// empty.
    ///
    /// # Errors
    ///
    /// If it cannot be started.
    pub fn spawn(mut command: Command) -> io::Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn()?;
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let stderr = child.stderr.take().expect("stderr is a pipe");
        let id = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(Self {
            stdout: Output::collect(stdout),
            stderr: Output::collect(stderr),
            pid: id.expect("a child has a positive process id"),
            child: Mutex::new(child),
            name,
        })
    }

    /// Starts the program at `path` with these arguments and no standard input.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Self::spawn).
    pub fn run<A: AsRef<std::ffi::OsStr>>(
        path: impl AsRef<std::ffi::OsStr>,
        arguments: impl IntoIterator<Item = A>,
    ) -> io::Result<Self> {
        let mut command = Command::new(path);
        command.args(arguments).stdin(Stdio::null());
        Self::spawn(command)
    }

    /// Returns the process id, for [probes](crate::probe).
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns what it wrote to standard output.
    pub fn stdout(&self) -> &Output {
        &self.stdout
    }

    /// Returns what it wrote to standard error.
    pub fn stderr(&self) -> &Output {
        &self.stderr
    }

    /// Takes its standard input, if that was a pipe and has not been taken.
    pub fn take_stdin(&self) -> Option<std::process::ChildStdin> {
        self.child().stdin.take()
    }

    /// Waits for a line, on either output, that contains `text`, and returns it.
    ///
    /// # Panics
    ///
    /// After 30 s, or when both outputs have ended without; shows all that was written.
    pub async fn line(&self, text: &str) -> String {
        let found = async {
            let stdout = self.stdout.line(|line| line.contains(text));
            let stderr = self.stderr.line(|line| line.contains(text));
            tokio::pin!(stdout, stderr);
            tokio::select! {
                Some(line) = &mut stdout => Some(line),
                Some(line) = &mut stderr => Some(line),
                else => None,
            }
        };
        match tokio::time::timeout(wait::GENEROUS, found).await {
            Ok(Some(line)) => line,
            Ok(None) => panic!("{self} ended without a line that contains {text:?}"),
            Err(_) => panic!("{self} wrote no line that contains {text:?}"),
        }
    }

    /// Waits for a line that contains `text` and returns the first address that follows it there.
    ///
    /// # Panics
    ///
    /// As [`line`](Self::line), or if that line has no address after `text`.
    pub async fn address_after(&self, text: &str) -> SocketAddr {
        let line = self.line(text).await;
        let after = line.split_once(text).map_or("", |(_, after)| after);
        output::first_address(after).unwrap_or_else(|| panic!("no address in {line:?}"))
    }

    /// Tells whether it is still running.
    pub fn is_running(&self) -> bool {
        matches!(self.child().try_wait(), Ok(None))
    }

    /// Waits for its end.
    ///
    /// # Panics
    ///
    /// If it has not ended within `bound`; shows all that was written.
    pub async fn exit(&self, bound: Duration) -> ExitStatus {
        let mut status = None;
        let ended = wait::until_async(bound, async || {
            status = self.child().try_wait().ok().flatten();
            status.is_some()
        });
        match (ended.await, status) {
            (Ok(()), Some(status)) => status,
            (Ok(()) | Err(_), _) => panic!("{self} is still running after {bound:?}"),
        }
    }

    /// Sends SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends SIGINT, as Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Sends SIGKILL.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends SIGSTOP: the process stands still, its sockets stay open.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Sends SIGCONT.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Sends any signal to the process; one that has ended already takes no notice.
    pub fn signal(&self, signal: Signal) {
        // Only while the child is not reaped does the id surely mean it.
        let mut child = self.child();
        if matches!(child.try_wait(), Ok(None)) {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Sends a signal to the process and to all its descendants, those in sessions of their own
    /// included: so a server stands still with every process that serves its connections.
    pub fn signal_tree(&self, signal: Signal) {
        // First the process: it starts no others meanwhile if it is to stand still.
        self.signal(signal);
        for descendant in crate::probe::descendants(self.id()) {
            let id = i32::try_from(descendant).ok().and_then(Pid::from_raw);
            let _ = id.map(|id| kill_process(id, signal));
        }
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().expect("no holder of this lock panics")
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} (process {})", self.name, self.id())?;
        writeln!(
            f,
            "--- stdout\n{}--- stderr\n{}---",
            self.stdout, self.stderr
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // First the group, then the wait: a group whose leader is not reaped keeps its id.
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = self.child().wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{probe, wait::GENEROUS};

    fn shell(script: &str) -> Process {
        Process::run("sh", ["-c", script]).unwrap()
    }

    #[tokio::test]
    async fn lines_are_waited_for_on_either_output() {
        let process = shell("echo listening on http://127.0.0.1:4711; echo trouble >&2; exec cat");
        assert_eq!(process.address_after("listening on").await.port(), 4711);
        assert_eq!(process.line("trou").await, "trouble");
        assert!(process.exit(GENEROUS).await.success());
    }

    #[tokio::test]
    async fn a_signal_ends_it() {
        let process = shell("echo ready; exec sleep 60");
        process.line("ready").await;
        process.stop();
        process.kill();
        assert!(!process.exit(GENEROUS).await.success());
        assert!(!process.is_running());
    }

    #[tokio::test]
    async fn dropping_it_kills_its_children() {
        let process = shell("sleep 60 & echo child $!; wait");
        let line = process.line("child").await;
        let child: u32 = line.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(probe::descendants(process.id()), [child]);
        drop(process);
        wait::until(GENEROUS, || !probe::is_alive(child)).unwrap();
    }
}
