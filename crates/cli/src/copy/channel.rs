//! A stream of bytes between a task and the thread that reads or writes files.

use std::io::{self, ErrorKind, Read, Write};

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many pieces may wait.
const DEPTH: usize = 8;
/// The size of a piece.
const PIECE: usize = 64 * 1024;

/// A channel for pieces of bytes.
pub(super) fn pipe() -> (Sender<Bytes>, Receiver<Bytes>) {
    channel(DEPTH)
}

/// Reads what a task sends.
pub(super) struct Reader {
    pieces: Receiver<Bytes>,
    front: Bytes,
}

impl Reader {
    pub(super) const fn new(pieces: Receiver<Bytes>) -> Self {
        let front = Bytes::new();
        Self { pieces, front }
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.front.is_empty() {
            match self.pieces.blocking_recv() {
                Some(piece) => self.front = piece,
                None => return Ok(0),
            }
        }
        let len = self.front.len().min(buffer.len());
        buffer[..len].copy_from_slice(&self.front.split_to(len));
        Ok(len)
    }
}

/// Writes what a task receives.
pub(super) struct Writer {
    pieces: Sender<Bytes>,
    gathered: BytesMut,
}

impl Writer {
    pub(super) fn new(pieces: Sender<Bytes>) -> Self {
        let gathered = BytesMut::with_capacity(PIECE);
        Self { pieces, gathered }
    }
}

impl Write for Writer {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let len = data.len().min(PIECE - self.gathered.len());
        self.gathered.extend_from_slice(&data[..len]);
        if self.gathered.len() == PIECE {
            self.flush()?;
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let next = BytesMut::with_capacity(PIECE);
        let piece = std::mem::replace(&mut self.gathered, next).freeze();
        let sent = self.pieces.blocking_send(piece);
        // Nobody receives any more: why is for them to say.
        sent.map_err(|_| ErrorKind::BrokenPipe.into())
    }
}
