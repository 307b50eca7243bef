//! What the command writes, on the stdout and stderr of this program.

use std::io::{self, ErrorKind};

use futures_util::FutureExt;
use tidegate_client::exec::{Events, Output};
use tokio::io::{AsyncWriteExt, Stderr, Stdout};

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// All of it is written.
    All,
    /// Nobody reads our stdout any more.
    ReaderGone,
}

/// Both outputs of this program, one of which may hold bytes back.
struct Outputs {
    out: Stdout,
    err: Stderr,
    /// Written to since the last flush.
    unflushed: Option<Output>,
}

/// Writes each chunk where it belongs, in order, until nothing follows.
///
/// # Errors
///
/// When stdout cannot be written to. A stderr that nobody reads is no reason to stop.
pub(super) async fn show(events: &mut Events) -> io::Result<Shown> {
    let mut outputs = Outputs {
        out: tokio::io::stdout(),
        err: tokio::io::stderr(),
        unflushed: None,
    };
    let written = copy(events, &mut outputs).await;
    match written {
        Ok(()) => Ok(Shown::All),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Shown::ReaderGone),
        Err(error) => Err(error),
    }
}

async fn copy(events: &mut Events, outputs: &mut Outputs) -> io::Result<()> {
    loop {
        let chunk = match events.next().now_or_never() {
            Some(chunk) => chunk,
            None => {
                // Nothing follows soon: what is here must be seen.
                outputs.flush().await?;
                events.next().await
            }
        };
        let Some(chunk) = chunk else {
            return outputs.flush().await;
        };
        outputs.write(chunk.output, &chunk.data).await?;
    }
}

impl Outputs {
    async fn write(&mut self, output: Output, data: &[u8]) -> io::Result<()> {
        if self.unflushed.is_some_and(|other| other != output) {
            self.flush().await?;
        }
        self.unflushed = Some(output);
        match output {
            Output::Stdout => self.out.write_all(data).await,
            Output::Stderr => {
                let _ = self.err.write_all(data).await;
                Ok(())
            }
        }
    }

    async fn flush(&mut self) -> io::Result<()> {
        match self.unflushed.take() {
            Some(Output::Stdout) => self.out.flush().await,
            Some(Output::Stderr) => {
                let _ = self.err.flush().await;
                Ok(())
            }
            None => Ok(()),
        }
    }
}
