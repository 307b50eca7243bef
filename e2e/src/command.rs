//! The shipped command, run to its end: everything it wrote, byte by byte.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tidegate_testkit::process::binary;
use tidegate_testkit::wait;

use crate::SANDBOX;
use crate::forward::Access;

/// `tidegate`, told how the gateway is reached and nothing else.
///
/// # Panics
///
/// If it was not built.
pub fn tidegate(access: &Access) -> Command {
    let program = binary("tidegate").unwrap_or_else(|error| panic!("{error}"));
    let mut command = Command::new(program);
    for gateway in &access.gateways {
        command.args(["--gateway", gateway]);
    }
    let files = [
        ("--ca", &access.ca),
        ("--cert", &access.cert),
        ("--key", &access.key),
    ];
    for (flag, path) in files {
        if let Some(path) = path {
            command.arg(flag).arg::<&Path>(path);
        }
    }
    command.stdin(Stdio::null());
    for variable in ["RUST_LOG", "TIDEGATE_GATEWAY", "TIDEGATE_CONTEXT"] {
        command.env_remove(variable);
    }
    command
}

/// `tidegate exec FLAGS box -- ARGV`.
///
/// # Panics
///
/// As [`tidegate`].
pub fn exec(access: &Access, flags: &[&str], argv: &[&str]) -> Command {
    let mut command = tidegate(access);
    command.arg("exec").args(flags).args([SANDBOX, "--"]);
    command.args(argv);
    command
}

/// A command that runs; dropping it kills it.
#[derive(Debug)]
pub struct Running {
    pid: Pid,
    child: Mutex<Child>,
    begun: Instant,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Finished {
    /// How.
    pub status: ExitStatus,
    /// All it wrote to standard output.
    pub stdout: Vec<u8>,
    /// All it wrote to standard error.
    pub stderr: String,
    /// From its start to its end.
    pub elapsed: Duration,
}

impl Running {
    /// Starts a command; its outputs are read from now on.
    ///
    /// # Panics
    ///
    /// If it cannot be started.
    pub fn start(mut command: Command) -> Self {
        use std::os::unix::process::CommandExt as _;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        let begun = Instant::now();
        let mut child = command.spawn().expect("the command can be started");
        let stdout = child.stdout.take().expect("stdout is a pipe");
        let stderr = child.stderr.take().expect("stderr is a pipe");
        Self {
            pid: Pid::from_child(&child),
            child: Mutex::new(child),
            begun,
            stdout: Some(collect(stdout)),
            stderr: Some(collect(stderr)),
        }
    }

    /// Starts a command that reads `stdin`, and then its end.
    ///
    /// # Panics
    ///
    /// As [`start`](Self::start).
    pub fn fed(mut command: Command, stdin: Vec<u8>) -> Self {
        command.stdin(Stdio::piped());
        let running = Self::start(command);
        let mut pipe = running.stdin();
        std::thread::spawn(move || {
            // One that reads no more is no failure here.
            let _ = pipe.write_all(&stdin);
        });
        running
    }

    /// Takes its standard input.
    ///
    /// # Panics
    ///
    /// If it has none of that kind, or was asked before.
    pub fn stdin(&self) -> std::process::ChildStdin {
        let stdin = self.child().stdin.take();
        stdin.expect("its stdin is a pipe that nobody has taken")
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let mut child = self.child();
        if matches!(child.try_wait(), Ok(None)) {
            let _ = kill_process(self.pid, signal);
        }
    }

    /// Waits for its end and for all it wrote.
    ///
    /// # Panics
    ///
    /// If it is still running after `bound`.
    pub async fn finish(mut self, bound: Duration) -> Finished {
        let mut status = None;
        let ended = wait::until_async(bound, async || {
            status = self.child().try_wait().ok().flatten();
            status.is_some()
        });
        let ended = ended.await;
        let elapsed = self.begun.elapsed();
        let _ = kill_process_group(self.pid, Signal::KILL);
        let read = |output: &mut Option<JoinHandle<Vec<u8>>>| {
            let output = output.take().expect("it is read once");
            output.join().expect("a reader does not panic")
        };
        let (stdout, stderr) = (read(&mut self.stdout), read(&mut self.stderr));
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        match (ended, status) {
            (Ok(()), Some(status)) => Finished {
                status,
                stdout,
                stderr,
                elapsed,
            },
            (Ok(()) | Err(_), _) => panic!(
                "still running after {bound:?}; {} bytes of output, stderr: {stderr}",
                stdout.len()
            ),
        }
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().expect("no holder of this lock panics")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process_group(self.pid, Signal::KILL);
        let _ = self.child().wait();
    }
}

impl Finished {
    /// The exit code; none after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Its output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // What came before a failure is what there is.
        let _ = pipe.read_to_end(&mut all);
        all
    })
}
