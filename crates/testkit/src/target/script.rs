//! What a target does with each connection, as a list of steps.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::{content::Content, record::Ended, socket::Socket};

const BUFFER: usize = 64 * 1024;

/// One thing a target does. A step that meets the end of the connection ends the script.
#[derive(Clone, Debug)]
pub enum Step {
    /// Sends these bytes.
    Send(Bytes),
    /// Sends this content.
    SendContent(Content),
    /// Sends `OK <bytes read so far>` and a newline.
    SendTotal,
    /// Sends as fast as it can, without end.
    SendForever,
    /// Sends one byte every `every`, `times` times.
    Trickle {
        /// The pause before each byte.
        every: Duration,
        /// How many bytes.
        times: u32,
    },
    /// Reads exactly this many bytes.
    Read(u64),
    /// Reads to FIN.
    ReadToEnd,
    /// Reads at most `chunk` bytes every `every`, to FIN.
    ReadSlowly {
        /// The most that is read at once.
        chunk: usize,
        /// The pause before each read.
        every: Duration,
    },
    /// Sends back all it reads, to FIN.
    Echo,
    /// Sends this content, then FIN, and reads to FIN meanwhile.
    Exchange(Content),
    /// Waits for [`Connection::cue`](super::Connection::cue).
    Cue,
    /// Does nothing for a while.
    Pause(Duration),
    /// Sends FIN.
    Finish,
    /// Keeps the socket open, reads nothing, notices nothing but an error.
    Hold,
    /// Closes with a RST. Ends the script.
    Reset,
}

/// Runs the steps on one connection, then closes it.
pub(super) async fn run(script: &[Step], socket: Socket, cue: Arc<Notify>) {
    for step in script {
        if let Step::Reset = step {
            return socket.reset();
        }
        if perform(step, &socket, &cue).await.is_err() {
            return;
        }
    }
}

async fn perform(step: &Step, socket: &Socket, cue: &Notify) -> Result<(), Ended> {
    match step {
        Step::Send(bytes) => socket.write(bytes).await,
        Step::SendContent(content) => socket.write_content(*content).await,
        Step::SendTotal => {
            let total = format!("OK {}\n", socket.seen().bytes_read);
            socket.write(total.as_bytes()).await
        }
        Step::SendForever => Err(socket.write_until_refused().await),
        Step::Trickle { every, times } => trickle(socket, *every, *times).await,
        Step::Read(bytes) => read_exactly(socket, *bytes).await,
        Step::ReadToEnd => read_to_end(socket).await,
        Step::ReadSlowly { chunk, every } => read_slowly(socket, *chunk, *every).await,
        Step::Echo => echo(socket).await,
        Step::Exchange(content) => exchange(socket, *content).await,
        Step::Cue => {
            cue.notified().await;
            Ok(())
        }
        Step::Pause(duration) => {
            tokio::time::sleep(*duration).await;
            Ok(())
        }
        Step::Finish => socket.shutdown_write().map_err(Ended::from),
        Step::Hold => Err(socket.until_error().await),
        Step::Reset => Err(Ended::Reset),
    }
}

async fn trickle(socket: &Socket, every: Duration, times: u32) -> Result<(), Ended> {
    for _ in 0..times {
        tokio::time::sleep(every).await;
        socket.write(b".").await?;
    }
    Ok(())
}

async fn read_exactly(socket: &Socket, bytes: u64) -> Result<(), Ended> {
    let mut buffer = vec![0; BUFFER];
    let mut rest = bytes;
    while rest > 0 {
        let room = usize::try_from(rest).map_or(BUFFER, |rest| rest.min(BUFFER));
        rest -= socket.read_some(&mut buffer[..room]).await? as u64;
    }
    Ok(())
}

async fn read_to_end(socket: &Socket) -> Result<(), Ended> {
    socket.read_to_end().await;
    ended_cleanly(socket)
}

async fn read_slowly(socket: &Socket, chunk: usize, every: Duration) -> Result<(), Ended> {
    let mut buffer = vec![0; chunk];
    loop {
        tokio::time::sleep(every).await;
        if socket.read_some(&mut buffer).await.is_err() {
            return ended_cleanly(socket);
        }
    }
}

async fn echo(socket: &Socket) -> Result<(), Ended> {
    let mut buffer = vec![0; BUFFER];
    while let Ok(read) = socket.read_some(&mut buffer).await {
        socket.write(&buffer[..read]).await?;
    }
    ended_cleanly(socket)
}

async fn exchange(socket: &Socket, content: Content) -> Result<(), Ended> {
    let send = async {
        socket.write_content(content).await?;
        socket.shutdown_write().map_err(Ended::from)
    };
    let (sent, read) = tokio::join!(send, read_to_end(socket));
    sent.and(read)
}

fn ended_cleanly(socket: &Socket) -> Result<(), Ended> {
    match socket.record().read_end() {
        Some(Ended::Eof) | None => Ok(()),
        Some(end @ (Ended::Reset | Ended::Error(_))) => Err(end),
    }
}
