//! One hop of a plain relay chain: what any relay has to be compared with.

use std::io;
use std::net::SocketAddr;

use anyhow::Result;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::{ready, tls};

/// The buffer of each direction.
const BUFFER: usize = 64 * 1024;

/// How one hop relays.
pub(super) struct Hop {
    /// Where each accepted connection goes.
    pub(super) connect: SocketAddr,
    /// TLS on the accepted side.
    pub(super) acceptor: Option<TlsAcceptor>,
    /// TLS on the dialled side.
    pub(super) connector: Option<TlsConnector>,
}

/// Relays every accepted connection.
pub(super) async fn run(hop: Hop) -> Result<()> {
    let hop: &'static Hop = Box::leak(Box::new(hop));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    ready(listener.local_addr()?)?;
    let mut relays = JoinSet::new();
    loop {
        let (downstream, _) = listener.accept().await?;
        relays.spawn(carry(downstream, hop));
        while relays.try_join_next().is_some() {}
    }
}

async fn carry(downstream: TcpStream, hop: &Hop) -> io::Result<()> {
    downstream.set_nodelay(true)?;
    let upstream = TcpStream::connect(hop.connect).await?;
    upstream.set_nodelay(true)?;
    match (&hop.acceptor, &hop.connector) {
        (None, None) => copy(downstream, upstream).await,
        (Some(accept), None) => copy(accept.accept(downstream).await?, upstream).await,
        (None, Some(connect)) => {
            copy(
                downstream,
                connect.connect(tls::server_name(), upstream).await?,
            )
            .await
        }
        (Some(accept), Some(connect)) => {
            let downstream = accept.accept(downstream).await?;
            copy(
                downstream,
                connect.connect(tls::server_name(), upstream).await?,
            )
            .await
        }
    }
}

async fn copy<D, U>(mut downstream: D, mut upstream: U) -> io::Result<()>
where
    D: AsyncRead + AsyncWrite + Unpin,
    U: AsyncRead + AsyncWrite + Unpin,
{
    copy_bidirectional_with_sizes(&mut downstream, &mut upstream, BUFFER, BUFFER)
        .await
        .map(drop)
}
