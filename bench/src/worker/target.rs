//! The far end of every path: does what the load generator orders (`load::Order`).

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use anyhow::Result;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, LocalSet};

use super::ready;
use crate::load::{CHUNK, GO, Order, STALLED_BUFFER};

/// What is sent.
static SOURCE: [u8; CHUNK] = [0xa5; CHUNK];

/// Serves every accepted connection.
pub(super) async fn run() -> Result<()> {
    LocalSet::new().run_until(accept()).await
}

async fn accept() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    ready(listener.local_addr()?)?;
    let endless_bytes = Rc::new(Cell::new(0));
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn_local(serve(stream, Rc::clone(&endless_bytes)));
        while connections.try_join_next().is_some() {}
    }
}

/// A connection that breaks is the load generator's to notice.
async fn serve(mut stream: TcpStream, endless_bytes: Rc<Cell<u64>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    match Order::accept(&mut stream).await? {
        Order::Send(count) => send(&mut stream, count).await?,
        Order::Receive(count) => receive(&mut stream, count).await?,
        Order::Echo => echo(&mut stream).await?,
        Order::Hold => {}
        Order::Endless => endless(&mut stream, &endless_bytes).await?,
        Order::Tally => stream.write_u64(endless_bytes.get()).await?,
    }
    until_fin(&mut stream).await
}

async fn send(stream: &mut TcpStream, count: u64) -> io::Result<()> {
    if stream.read_u8().await? != GO {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut left = count;
    while left > 0 {
        let piece = left.min(CHUNK as u64);
        stream.write_all(&SOURCE[..piece as usize]).await?;
        left -= piece;
    }
    stream.shutdown().await
}

async fn receive(stream: &mut TcpStream, count: u64) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    let mut arrived = 0;
    while arrived < count {
        match stream.read(&mut buffer).await? {
            0 => break,
            piece => arrived += piece as u64,
        }
    }
    stream.write_u64(arrived).await
}

async fn echo(stream: &mut TcpStream) -> io::Result<()> {
    let mut buffer = [0; 64];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            count => stream.write_all(&buffer[..count]).await?,
        }
    }
}

async fn endless(stream: &mut TcpStream, bytes: &Cell<u64>) -> io::Result<()> {
    set_socket_send_buffer_size(&*stream, STALLED_BUFFER as usize)?;
    loop {
        let count = stream.write(&SOURCE).await?;
        bytes.set(bytes.get() + count as u64);
    }
}

async fn until_fin(stream: &mut TcpStream) -> io::Result<()> {
    let mut rest = [0; 64];
    while stream.read(&mut rest).await? > 0 {}
    stream.shutdown().await
}
