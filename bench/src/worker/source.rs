//! A command that writes in bulk: what the target does for `load::Order::Send`, on pipes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use anyhow::{Result, ensure};

use crate::load::{CHUNK, GO, READY};

/// Says that it is ready, waits until it may begin, and writes.
pub(super) fn run(bytes: u64) -> Result<()> {
    // Not `Stdout`, which would look for ends of lines.
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    stdout.write_all(&[READY])?;
    let mut go = [0];
    io::stdin().lock().read_exact(&mut go)?;
    ensure!(go == [GO], "told {go:?}");
    let source = vec![0xa5; CHUNK];
    let mut left = bytes;
    while left > 0 {
        let piece = left.min(CHUNK as u64);
        stdout.write_all(&source[..piece as usize])?;
        left -= piece;
    }
    Ok(())
}
