//! Accepting TCP connections, through shortages too.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpListener, TcpStream};

/// Connections the kernel may complete before we accept them.
const BACKLOG: i32 = 4_096;

/// How long to let a shortage pass. A full descriptor table raises no event when it empties, so
/// that asking again is the only way to find out.
const SHORTAGE_RETRY: Duration = Duration::from_millis(50);

/// A listening socket whose `accept` does not fail.
#[derive(Debug)]
pub struct Listener {
    inner: TcpListener,
}

/// Listens on `addr`, where a restart can listen again at once: SO_REUSEADDR, but for Windows, which
/// lets a restart do that without, and with it lets others share the port.
///
/// # Errors
///
/// What the kernel says: the address is in use, is not ours, or needs a privilege.
pub fn listen(addr: SocketAddr) -> io::Result<Listener> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    // On Windows the option means something else: two programs on one port, and no error.
    #[cfg(not(windows))]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(Listener {
        inner: TcpListener::from_std(socket.into())?,
    })
}

impl Listener {
    /// Tells the address that is listened on, with the port the kernel chose for port 0.
    ///
    /// # Errors
    ///
    /// What the kernel says, which for a listening socket is nothing.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// Accepts the next connection, with TCP_NODELAY set.
    ///
    /// A connection that broke before it was accepted is passed over. When descriptors or memory
    /// run out, it tries again until there are some: what is open goes on, nothing spins.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no accepted connection is lost.
    pub async fn accept(&self) -> (TcpStream, SocketAddr) {
        let mut reported = false;
        loop {
            match self.inner.accept().await {
                Ok((stream, peer)) => {
                    // Fails only on a connection that is gone, which its first read will tell.
                    let _ = stream.set_nodelay(true);
                    return (stream, peer);
                }
                Err(error) if concerns_one_connection(&error) => {
                    tracing::debug!(%error, "a connection broke before it was accepted");
                }
                Err(error) => {
                    if !std::mem::replace(&mut reported, true) {
                        tracing::warn!(%error, "cannot accept connections, trying on");
                    }
                    tokio::time::sleep(SHORTAGE_RETRY).await;
                }
            }
        }
    }
}

fn concerns_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted, TimedOut};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted | TimedOut
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_free_port_is_told_and_accepts() {
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let addr = listener.local_addr().unwrap();
        let (_client, (accepted, peer)) = tokio::join!(TcpStream::connect(addr), listener.accept());
        assert!(accepted.nodelay().unwrap());
        assert!(peer.ip().is_loopback());
    }

    #[tokio::test]
    async fn a_port_in_use_is_an_error() {
        let first = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let error = listen(first.local_addr().unwrap()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }
}
