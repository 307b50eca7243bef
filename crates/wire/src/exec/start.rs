//! The first message: which command, where, and what its caller understands.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::exec::{Command, TerminalSize};
use tidegate_lifecycle::id::SandboxName;

use crate::decode::{DecodeError, required};
use crate::proto::openshell::{self as proto, exec_sandbox_input::Payload};
use crate::{convert, message, status};

/// What to run, wherever the sandbox is.
#[derive(Clone, PartialEq, Eq)]
pub struct Start {
    /// The command.
    pub command: Command,
    /// Its first input, and for ExecSandbox all of it.
    pub stdin: Bytes,
    /// What the caller understands.
    pub capabilities: Capabilities,
    /// A name for people; empty where nobody says.
    pub request_id: String,
}

impl Start {
    /// A request of ours to run `command`.
    pub fn new(command: Command) -> Self {
        Self {
            command,
            stdin: Bytes::new(),
            capabilities: Capabilities::EXEC,
            request_id: String::new(),
        }
    }

    /// Reads everything but the sandbox.
    pub(super) fn decode(request: proto::ExecSandboxRequest) -> Result<Self, DecodeError> {
        let whole_seconds = Some(u64::from(request.timeout_seconds)).filter(|it| *it > 0);
        let timeout = match request.execution_timeout {
            Some(length) => Some(exact("execution_timeout", length)?),
            None => whole_seconds.map(Duration::from_secs),
        };
        let kill_grace = request.kill_grace.map(|length| exact("kill_grace", length));
        Ok(Self {
            command: Command {
                argv: request.command,
                workdir: Some(request.workdir).filter(|path| !path.is_empty()),
                environment: request.environment.into_iter().collect(),
                terminal: request.tty.then(|| size(request.cols, request.rows)),
                timeout,
                kill_grace: kill_grace.transpose()?,
                kill_background: request.kill_background,
                stdout_limit: request.stdout_limit,
                stderr_limit: request.stderr_limit,
            },
            stdin: request.stdin,
            capabilities: Capabilities::from_names(request.capabilities),
            request_id: convert::bounded(&request.request_id, status::MAX_NAME).to_owned(),
        })
    }

    /// The request for `sandbox`, in both dialects at once.
    pub(super) fn encode(self, sandbox: String) -> proto::ExecSandboxRequest {
        let command = self.command;
        let size = command.terminal;
        proto::ExecSandboxRequest {
            sandbox,
            command: command.argv,
            workdir: command.workdir.unwrap_or_default(),
            environment: command.environment.into_iter().collect(),
            timeout_seconds: command.timeout.map_or(0, convert::whole_seconds),
            stdin: self.stdin,
            tty: size.is_some(),
            cols: size.map_or(0, |size| u32::from(size.cols)),
            rows: size.map_or(0, |size| u32::from(size.rows)),
            no_login_shell: true,
            request_id: self.request_id,
            workspace_scope: None,
            execution_timeout: command.timeout.map(convert::duration),
            capabilities: self.capabilities.names(),
            kill_grace: command.kill_grace.map(convert::duration),
            kill_background: command.kill_background,
            stdout_limit: command.stdout_limit,
            stderr_limit: command.stderr_limit,
        }
    }
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Start")
            .field("program", &self.command.argv.first())
            .field("capabilities", &self.capabilities)
            .field("request_id", &self.request_id)
            .finish_non_exhaustive()
    }
}

/// The request of ExecSandbox, and the first message of ExecSandboxInteractive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecRequest {
    /// Which sandbox runs it.
    pub sandbox: SandboxName,
    /// What to run.
    pub start: Start,
}

impl ExecRequest {
    /// Reads ExecSandbox's message without its prefix, or what [`First::Start`](super::First::Start)
    /// holds.
    ///
    /// # Errors
    ///
    /// Names the field that is missing or bad. Whether the command can be run is not asked here.
    pub fn parse(request: &Bytes) -> Result<Self, DecodeError> {
        let mut request = proto::ExecSandboxRequest::decode(request.clone())?;
        let sandbox = required("sandbox", std::mem::take(&mut request.sandbox))?;
        Ok(Self {
            sandbox: SandboxName::parse(&sandbox).map_err(|e| DecodeError::bad("sandbox", e))?,
            start: Start::decode(request)?,
        })
    }

    /// The whole message of ExecSandbox.
    pub fn encode(self) -> Bytes {
        message::encode(&self.start.encode(self.sandbox.to_string()))
    }

    /// The whole first message of ExecSandboxInteractive.
    pub fn encode_first(self) -> Bytes {
        let start = self.start.encode(self.sandbox.to_string());
        message::encode(&proto::ExecSandboxInput {
            payload: Some(Payload::Start(start)),
        })
    }
}

/// The size of a terminal, with the usual one in the place of what nobody said.
pub(super) fn size(cols: u32, rows: u32) -> TerminalSize {
    let usual = TerminalSize::default();
    let or = |asked: u32, usual: u16| match u16::try_from(asked) {
        Ok(0) => usual,
        Ok(asked) => asked,
        Err(_) => u16::MAX,
    };
    TerminalSize {
        cols: or(cols, usual.cols),
        rows: or(rows, usual.rows),
    }
}

/// A length of time that must not be negative: to ignore one would be to run without a limit.
fn exact(field: &'static str, length: prost_types::Duration) -> Result<Duration, DecodeError> {
    convert::length(Some(length)).ok_or_else(|| DecodeError::bad(field, "a time is not negative"))
}
