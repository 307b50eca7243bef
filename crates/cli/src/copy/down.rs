//! Out of a sandbox.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use tempfile::TempDir;
use tidegate_client::SandboxName;
use tidegate_client::exec::{Exec, Outcome, Output};
use tokio::sync::mpsc::Sender;

use super::progress::Progress;
use super::unpack::Unpacked;
use super::{Copied, Copy, channel, place, script, settle, unpack};
use crate::failure::Failure;

/// How much of what tar complains about is kept.
const COMPLAINT: usize = 4096;

/// What arrived, in a folder that goes away with it.
struct Arrived {
    folder: TempDir,
    unpacked: Unpacked,
}

/// What came of the sandbox's side.
struct Received {
    outcome: Outcome,
    complaint: Vec<u8>,
    /// Nobody here takes what it sends any more.
    unwanted: bool,
}

impl Copy<'_> {
    pub(super) async fn down(
        &self,
        sandbox: &SandboxName,
        path: &str,
        to: &Path,
    ) -> Result<Copied, Failure> {
        let to = destination(path, to);
        let beside = to.parent().filter(|it| !it.as_os_str().is_empty());
        let beside = beside.map_or_else(|| PathBuf::from("."), Path::to_owned);
        let folder = tempfile::Builder::new()
            .prefix(".tidegate-")
            .tempdir_in(&beside);
        let folder =
            folder.map_err(|error| self.failed(format!("{}: {error}", beside.display())))?;

        let command = script(include_str!("send.sh"), &[path]);
        let exec = self.client.exec(sandbox, command).await;
        let exec = exec.map_err(|end| Failure::end(format!("copy {}", self.what), end))?;
        let (pieces, reader) = channel::pipe();
        let unpacking = self.threads.spawn_blocking(move || {
            let unpacked =
                unpack::unpack(channel::Reader::new(reader), &folder.path().join("new"))?;
            Ok::<_, std::io::Error>(Arrived { folder, unpacked })
        });
        let mut progress = Progress::new(self.console, self.what.clone(), None);
        let received = receive(exec, pieces, &mut progress).await;
        let elapsed = progress.elapsed();
        drop(progress);

        let arrived = unpacking.await.map_err(|error| self.failed(error))?;
        if !received.unwanted && !received.outcome.is_success() {
            return Err(self.refused(sandbox, received.outcome, &received.complaint));
        }
        let Arrived { folder, unpacked } = arrived.map_err(|error| self.failed(error))?;
        if !received.outcome.is_success() {
            return Err(self.refused(sandbox, received.outcome, &received.complaint));
        }
        if unpacked.is_folder || unpacked.files > 0 {
            let settled = settle::settle(&folder.path().join("new"), &to, &unpacked.folders);
            settled.map_err(|error| self.failed(error))?;
        }
        Ok(Copied {
            files: unpacked.files,
            bytes: unpacked.bytes,
            left_out: unpacked.left_out,
            elapsed,
        })
    }
}

/// What the copy is called here.
fn destination(path: &str, to: &Path) -> PathBuf {
    match place::name_there(path) {
        Some(name) if to.is_dir() => to.join(name),
        // What ends in a slash is a folder, and where there is none the system says so.
        Some(name) if ends_in_slash(to) => to.join(name),
        Some(_) | None => to.to_owned(),
    }
}

fn ends_in_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

async fn receive(mut exec: Exec, pieces: Sender<Bytes>, progress: &mut Progress<'_>) -> Received {
    exec.input().close();
    let mut complaint = Vec::new();
    let mut unwanted = false;
    while let Some(chunk) = exec.events().next().await {
        match chunk.output {
            Output::Stdout => {
                progress.moved(chunk.data.len());
                if pieces.send(chunk.data).await.is_err() && !unwanted {
                    unwanted = true;
                    exec.cancel();
                }
            }
            Output::Stderr => {
                let room = COMPLAINT
                    .saturating_sub(complaint.len())
                    .min(chunk.data.len());
                complaint.extend_from_slice(&chunk.data[..room]);
            }
        }
    }
    let outcome = exec.wait().await;
    Received {
        outcome,
        complaint,
        unwanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_there_receives_the_copy() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path();
        assert_eq!(destination("/a/b", folder), folder.join("b"));
        assert_eq!(destination("/a/b/.", folder), folder);
        assert_eq!(destination("/a/b", &folder.join("c")), folder.join("c"));
        assert_eq!(destination("/a/b", &folder.join("c/")), folder.join("c/b"));
    }
}
