//! Into a sandbox.

use std::io::{self, ErrorKind};
use std::path::Path;

use bytes::Bytes;
use tidegate_client::SandboxName;
use tidegate_client::exec::Input;
use tokio::sync::mpsc::Receiver;

use super::pack::{self, Packed};
use super::progress::Progress;
use super::{Copied, Copy, channel, place, script};
use crate::failure::Failure;

/// How much of what tar complains about is kept.
const COMPLAINT: usize = 4096;

impl Copy<'_> {
    pub(super) async fn up(
        &self,
        from: &Path,
        sandbox: &SandboxName,
        path: &str,
    ) -> Result<Copied, Failure> {
        let readable = std::fs::metadata(from);
        readable.map_err(|error| self.failed(error))?;
        let name = place::name_here(from);
        let name = name.as_deref().map_or(Some(""), |name| name.to_str());
        let name = name.ok_or_else(|| self.failed("its name is not UTF-8"))?;

        let command = script(include_str!("receive.sh"), &[path, name]);
        let exec = self.client.exec(sandbox, command).await;
        let exec = exec.map_err(|end| Failure::end(format!("copy {}", self.what), end))?;
        let (mut input, mut events) = exec.split();
        let total = self.console.shows_progress().then(|| pack::size(from));
        let mut progress = Progress::new(self.console, self.what.clone(), total);
        let sending = self.send(from, &mut input, &mut progress);
        let complaining = events.collect(COMPLAINT);
        let (packed, collected) = {
            let (mut sending, mut complaining) =
                (std::pin::pin!(sending), std::pin::pin!(complaining));
            tokio::select! {
                packed = &mut sending => (Some(packed), complaining.await),
                // It has ended before it had everything.
                collected = &mut complaining => (None, collected),
            }
        };
        let elapsed = progress.elapsed();
        drop(progress);
        let packed = match packed {
            Some(Err(error)) if error.kind() != ErrorKind::BrokenPipe => {
                return Err(self.failed(error));
            }
            Some(Ok(packed)) if collected.outcome.is_success() => packed,
            Some(_) | None => {
                let said = &collected.stderr.data;
                return Err(self.refused(sandbox, collected.outcome, said));
            }
        };
        Ok(Copied {
            files: packed.files,
            bytes: packed.bytes,
            left_out: packed.left_out,
            elapsed,
        })
    }

    /// Sends everything, and then the end; or cancels, so that the end is not taken for one.
    async fn send(
        &self,
        from: &Path,
        input: &mut Input,
        progress: &mut Progress<'_>,
    ) -> io::Result<Packed> {
        let (writer, pieces) = channel::pipe();
        let from = from.to_owned();
        let pack = move || pack::pack(&from, channel::Writer::new(writer));
        let packing = self.threads.spawn_blocking(pack);
        let written = write(pieces, input, progress).await;
        let packed = packing.await.map_err(io::Error::other)?;
        match (written, packed) {
            (true, Ok(packed)) => {
                input.close();
                Ok(packed)
            }
            (true, Err(error)) => {
                input.cancel();
                Err(error)
            }
            // Why, the other half knows.
            (false, _) => Err(ErrorKind::BrokenPipe.into()),
        }
    }
}

/// Writes every piece. Says whether the command took them.
async fn write(
    mut pieces: Receiver<Bytes>,
    input: &mut Input,
    progress: &mut Progress<'_>,
) -> bool {
    while let Some(piece) = pieces.recv().await {
        progress.moved(piece.len());
        if input.write(piece).await.is_err() {
            return false;
        }
    }
    true
}
