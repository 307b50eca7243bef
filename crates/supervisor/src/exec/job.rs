//! One command, from what is asked to its exit.

use std::sync::Arc;

use tidegate_bridge::{ExecPipe, PipeReceiver, PipeSender, exec_pipe};
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::exec::Command;
use tidegate_lifecycle::id::HopName;
use tidegate_transport::Buffered;
use tidegate_wire::exec::Item;

use super::pump::Pump;
use super::{Commands, Stop, failure};

/// One command, and the pipe on which it is asked for and answers.
pub(crate) struct Job {
    commands: Commands,
    sender: PipeSender,
    receiver: PipeReceiver,
    stop: Stop,
    hop: HopName,
}

impl Job {
    /// A job, and the end of a tunnel that it serves.
    pub(super) fn new(
        commands: Commands,
        stop: Stop,
        hop: HopName,
        buffered: &Arc<Buffered>,
    ) -> (ExecPipe, Self) {
        let message = "the supervisor lost the command to a fault of its own";
        let died = End::new(Origin::Supervisor, Reason::InternalError, message);
        let (process, sender, receiver) = exec_pipe(died, buffered);
        let job = Self {
            commands,
            sender,
            receiver,
            stop,
            hop,
        };
        (process, job)
    }

    /// Runs the command that is asked for, up to its exit. When the tunnel has ended before, so has
    /// the command: with all of its descendants, and not by the end of its input.
    pub(crate) async fn run(mut self) {
        let Some(command) = self.command().await else {
            return;
        };
        let first = self.first();
        let runner = &self.commands.0;
        let running = if matches!(first, Some(Item::StdinFin)) {
            runner.start_without_input(command).await
        } else {
            runner.start(command).await
        };
        let running = match running {
            Ok(running) => running,
            Err(error) => {
                let end = failure::end(&error).via(&self.hop);
                // A caller that has gone meanwhile needs no reason.
                let _ = self.sender.send(Item::Started(Err(Box::new(end)))).await;
                return;
            }
        };
        let stop = self.stop.listen();
        let started = Item::Started(Ok(running.scope()));
        if self.sender.send(started).await.is_ok() {
            let pump = Pump::new(running, self.sender, self.receiver, stop);
            pump.beginning_with(first).await;
        }
    }

    /// What is to be run; none when the stream is over before it was said.
    async fn command(&mut self) -> Option<Command> {
        match self.receiver.recv().await {
            Ok(Some(Item::Start(start))) => Some(start.command),
            // The tunnel lets nothing else come first.
            Ok(_) | Err(_) => None,
        }
    }

    /// What is said to the command first, if it has been said already: often that nothing will be.
    fn first(&mut self) -> Option<Item> {
        match self.receiver.try_recv() {
            Some(Ok(item)) => item,
            // How the stream has ended is told again.
            Some(Err(_)) | None => None,
        }
    }
}

impl Commands {
    /// A job for one of its streams, and the end of a tunnel that it serves.
    pub(crate) fn job(self, stop: Stop, hop: HopName, buffered: &Arc<Buffered>) -> (ExecPipe, Job) {
        Job::new(self, stop, hop, buffered)
    }
}
