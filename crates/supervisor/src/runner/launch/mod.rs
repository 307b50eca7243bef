//! From a command that was asked for to a program that runs.
//!
//! ```text
//!  supervisor ──Request, open files──▶ launcher ─▶ session, terminal, directory, files
//!             ◀──READY or Failure───            ─▶ execve
//!             ◀──end of the socket──
//! ```
//!
//! The launcher is a process of its own (see [`nursery`](super::nursery)) rather than what runs
//! between fork and exec in the supervisor: there, with threads and half of the memory of a large
//! process, hardly anything is allowed. It can look around, and say exactly what is missing.

mod failure;
pub(super) mod program;
mod request;
mod resolve;

use std::io;
use std::os::fd::BorrowedFd;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::WriteHalf;

pub(super) use self::failure::{Failure, Stage};
pub(super) use self::request::Request;
pub(super) use self::resolve::DEFAULT_PATH;

/// What a launcher says when nothing but `execve` is left to do.
const READY: u8 = b'R';

/// Tells a launcher what to become.
pub(super) async fn tell(
    launcher: &mut WriteHalf<'_>,
    request: &Request,
    files: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let body = request.encode();
    let len = u32::try_from(body.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    super::socket::send(launcher.as_ref(), &len.to_le_bytes(), files)?;
    launcher.write_all(&body).await
}

/// Waits until a launcher has become what it was told, or has failed to.
pub(super) async fn outcome(launcher: &mut UnixStream) -> io::Result<Result<(), Failure>> {
    let mut said = Vec::new();
    launcher.read_to_end(&mut said).await?;
    match said.split_first() {
        // The socket is closed by `execve`.
        Some((&READY, [])) => Ok(Ok(())),
        Some((&READY, failure)) => Ok(Err(Failure::decode(failure)?)),
        Some(_) => Ok(Err(Failure::decode(&said)?)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
