//! The client SDK: streams into a sandbox and commands in it, over one connection.
//!
//! What a command costs is compared with what a stream costs the same client on the same path; a
//! `port-forward` between would be one process more for the streams alone.

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use tidegate_client::exec::{Command, Exec, Exit, Outcome, Output};
use tidegate_client::{Client, SandboxName, Stream, Target};

use super::order::Order;
use crate::bounded::{LONG, SHORT, within};

/// What a command writes when it is ready, not part of what is measured.
pub(crate) const READY: u8 = b'!';

/// A sandbox, and the client that reaches it. Clones share the connection.
#[derive(Clone)]
pub(crate) struct Sandbox {
    client: Client,
    name: SandboxName,
    target: Target,
}

impl Sandbox {
    /// The sandbox `name`, from which the target is reached at `port`.
    pub(crate) fn new(client: Client, name: &str, port: u16) -> Result<Self> {
        Ok(Self {
            client,
            name: SandboxName::parse(name)?,
            target: Target::tcp("localhost", port.into())?,
        })
    }

    /// Opens a stream, orders, and waits until the target confirmed.
    pub(crate) async fn stream(&self, order: Order) -> Result<Stream> {
        within("opening a stream", SHORT, async {
            let target = self.target.clone();
            let mut stream = self.client.forward(&self.name, target).await?;
            order.place(&mut stream).await?;
            anyhow::Ok(stream)
        })
        .await
    }

    /// Runs a command that reads nothing, writes nothing and succeeds, from its start to its end.
    pub(crate) async fn run(&self, argv: &[&str]) -> Result<()> {
        within(format!("running {argv:?}"), SHORT, async {
            let mut exec = self.client.exec(&self.name, command(argv)).await?;
            let collected = exec.collect(0).await;
            ensure!(collected.outcome.is_success(), "it {}", collected.outcome);
            let arrived = collected.stdout.arrived + collected.stderr.arrived;
            ensure!(arrived == 0, "it wrote {arrived} bytes");
            Ok(())
        })
        .await
    }

    /// Starts a command and waits until it runs.
    pub(crate) async fn start(&self, command: Command) -> Result<Running> {
        within(format!("starting {:?}", command.argv), SHORT, async {
            let mut exec = self.client.exec(&self.name, command).await?;
            exec.started().await?;
            anyhow::Ok(Running { exec, arrived: 0 })
        })
        .await
    }
}

/// The command `argv`, on pipes, everything else as by default.
pub(crate) fn command(argv: &[&str]) -> Command {
    Command {
        argv: argv.iter().map(|&word| word.to_owned()).collect(),
        ..Command::default()
    }
}

/// A command that runs. Dropping it ends it.
pub(crate) struct Running {
    exec: Exec,
    arrived: u64,
}

impl Running {
    /// Waits until the command says that it is ready.
    pub(crate) async fn ready(&mut self) -> Result<()> {
        let got = within("waiting for a command", SHORT, self.byte()).await?;
        ensure!(got == READY, "a command began with {got:#x}");
        Ok(())
    }

    /// Sends a byte.
    pub(crate) async fn send(&mut self, byte: u8) -> Result<()> {
        Ok(self.exec.input().write(vec![byte]).await?)
    }

    /// The next byte, with nothing behind it.
    pub(crate) async fn byte(&mut self) -> Result<u8> {
        match &self.chunk().await?[..] {
            [byte] => Ok(*byte),
            more => bail!("{} bytes instead of one", more.len()),
        }
    }

    /// Takes exactly `count` bytes of the command's output.
    pub(crate) async fn take(&mut self, count: u64) -> Result<()> {
        within(format!("taking {count} bytes of output"), LONG, async {
            let mut left = count;
            while left > 0 {
                let got = self.chunk().await?.len() as u64;
                ensure!(got <= left, "{} bytes too many", got - left);
                left -= got;
            }
            Ok(())
        })
        .await
    }

    /// Waits for the command's end: the sandbox must have sent what arrived here, all of it.
    pub(crate) async fn finish(mut self) -> Result<Exit> {
        within("waiting for a command's end", SHORT, async {
            let rest = self.exec.events().next().await;
            ensure!(rest.is_none(), "output after the last byte");
            let outcome = self.exec.wait().await;
            let exit = outcome.exit().with_context(|| outcome.to_string())?;
            let (total, arrived) = (exit.stdout.total, self.arrived);
            ensure!(total == arrived, "{arrived} of {total} bytes arrived");
            Ok(exit.clone())
        })
        .await
    }

    /// Sends a signal.
    pub(crate) fn signal(&mut self, number: i32) {
        self.exec.input().signal(number);
    }

    /// Ends the command and waits until that is so.
    pub(crate) async fn cancel(mut self) -> Result<()> {
        within("cancelling a command", SHORT, async {
            self.exec.cancel();
            let outcome = self.exec.wait().await;
            ensure!(outcome == Outcome::CancelledHere, "it {outcome}");
            Ok(())
        })
        .await
    }

    /// What the command wrote to stdout, at least one byte.
    async fn chunk(&mut self) -> Result<Bytes> {
        let Some(chunk) = self.exec.events().next().await else {
            bail!("the command's output ended: {}", self.exec.wait().await);
        };
        if chunk.output != Output::Stdout {
            bail!("on stderr: {}", String::from_utf8_lossy(&chunk.data));
        }
        self.arrived += chunk.data.len() as u64;
        Ok(chunk.data)
    }
}
