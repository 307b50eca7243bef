//! Commands inside a sandbox: start one, talk to it, and believe how it ends.
//!
//! ```no_run
//! # async fn example(client: tidegate_client::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_client::SandboxName;
//! use tidegate_client::exec::{Command, Outcome};
//!
//! let sandbox = SandboxName::parse("local")?;
//! let command = Command {
//!     argv: vec!["sort".to_owned()],
//!     ..Command::default()
//! };
//! let mut exec = client.exec(&sandbox, command).await?;
//! exec.input().write("b\na\n").await?;
//! exec.input().close();
//! while let Some(chunk) = exec.events().next().await {
//!     println!("{:?}: {} bytes", chunk.output, chunk.data.len());
//! }
//! match exec.wait().await {
//!     Outcome::Exited(exit) => println!("exit code {}", exit.code),
//!     other => println!("{other}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Only [`Exec::wait`] says whether the output is whole. An [`Exec`] that is dropped, both halves of
//! it, is cancelled: the command and its descendants are made to end.

mod collect;
mod events;
mod input;
mod outcome;
mod outputs;
mod task;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use tidegate_bridge::{ExecEnd, Handle, RpcKind, Tunnel, exec_pipe};
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::id::{SandboxName, SessionId, StreamId};
use tidegate_lifecycle::leg::Orientation;
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::relay::Side;
use tidegate_lifecycle::{Capabilities, Capability};
use tidegate_wire::exec::{ExecRequest, Start};
use tidegate_wire::metadata;

pub use tidegate_lifecycle::exec::{
    Command, CommandLimits, Exit, ExitReason, InvalidCommand, KillScope, Output, Summary,
    TerminalSize,
};

pub use self::collect::{Collected, Kept};
pub use self::events::{Chunk, Events};
pub use self::input::Input;
pub use self::outcome::Outcome;
pub use self::outputs::OutputReader;

use self::task::Task;
use crate::client::Client;

/// A command that was asked for: its [`Input`] and its [`Events`].
#[derive(Debug)]
pub struct Exec {
    input: Input,
    events: Events,
}

/// The path to a command, known once it runs.
#[derive(Clone, Debug)]
pub struct Started {
    /// The name the gateway gave the stream, for `streams close`.
    pub stream: Option<StreamId>,
    /// The supervisor's session that runs it.
    pub session: Option<SessionId>,
    /// What the whole path can promise.
    pub path: Capabilities,
}

impl Started {
    /// Whether signals reach the command. On an older path INT and QUIT reach a terminal's program.
    pub const fn takes_signals(&self) -> bool {
        self.path.has(Capability::ExecResult)
    }
}

impl Client {
    /// Asks for `command` to be run in `sandbox`. It resolves when the request is on its way: input
    /// may follow at once, [`Exec::started`] says when it runs. Nothing is ever sent twice.
    ///
    /// # Errors
    ///
    /// When no gateway can be reached, or the command can be told to be unusable from here.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the command.
    pub async fn exec(&self, sandbox: &SandboxName, command: Command) -> Result<Exec, End> {
        if let Err(invalid) = command.check(&CommandLimits::default()) {
            let message = invalid.to_string();
            return Err(End::new(Origin::Client, Reason::InvalidRequest, message));
        }
        let (send, head) = self.open(metadata::EXEC_SANDBOX_INTERACTIVE).await?;
        let start = Start::new(command);
        let kind = tidegate_wire::exec::Item::Start(Box::new(start.clone())).kind();
        let sandbox = sandbox.clone();
        let first = ExecRequest { sandbox, start }.encode_first();
        let total = self.buffered();
        let remote = ExecEnd::opened(RpcKind::ExecClient, send, head, first, None, total);
        let (local, sender, receiver) = exec_pipe(task::dropped(), total);
        let now = Instant::now();
        let mut execution = tidegate_lifecycle::exec::Execution::new(
            tidegate_lifecycle::exec::Hop::local(),
            tidegate_lifecycle::exec::Hop::opener(Orientation::Forward, None),
            StreamLimits::default(),
            Origin::Client,
            self.hop().clone(),
            now,
        );
        // It is on its way already, as the first message.
        execution.recv(Side::Downstream, kind, now);
        let handle = Handle::new(now);
        let tunnel = Tunnel::new(local, remote, execution, handle.clone(), now);
        let (task, started) = Task::spawn(tunnel, handle);
        let task = Arc::new(task);
        Ok(Exec {
            input: Input::new(sender, Arc::clone(&task)),
            events: Events::new(receiver, started, task, self.hop().clone()),
        })
    }
}

impl Exec {
    /// The half that speaks to the command.
    pub const fn input(&mut self) -> &mut Input {
        &mut self.input
    }

    /// The half that hears it.
    pub const fn events(&mut self) -> &mut Events {
        &mut self.events
    }

    /// Both halves, for tasks of their own.
    pub fn split(self) -> (Input, Events) {
        (self.input, self.events)
    }

    /// Waits until the command runs.
    ///
    /// # Errors
    ///
    /// Why it does not: [`Exec::wait`] says the same.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe.
    pub async fn started(&mut self) -> Result<&Started, End> {
        self.events.started().await
    }

    /// Ends the command's stdin, reads and drops the output that is left, and says how it ended.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; the output that was dropped is gone.
    pub async fn wait(&mut self) -> Outcome {
        self.input.close();
        self.events.wait().await
    }

    /// Ends the command's stdin, keeps at most `limit` bytes of each output, and says how it ended.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: what was kept is gone.
    pub async fn collect(&mut self, limit: usize) -> Collected {
        self.input.close();
        self.events.collect(limit).await
    }

    /// Ends the command, its descendants with it. [`Exec::wait`] then says
    /// [`Outcome::CancelledHere`].
    pub fn cancel(&self) {
        self.input.cancel();
    }
}
