//! From a URL to a connection: resolve, connect, proxy, TLS, HTTP/2.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use h2::client::{Connection as H2Connection, SendRequest};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsStream;

use super::connection::Connection;
use super::endpoint::Endpoint;
use super::link::Link;
use crate::io::{Io, Socket};
use crate::keepalive::KeepAlive;
use crate::life::Life;
use crate::proxy::{self, ProxyError};
use crate::{ClientTls, Lost, Payload, Proxy, TlsError};

/// How long one address may take before the next is tried.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(3);

/// Why a server could not be connected to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The host's name leads to no address.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The name that was asked for.
        host: String,
        /// What the resolver said.
        source: io::Error,
    },
    /// No address took the connection. Tells about the last one.
    #[error("cannot connect to {addr}: {source}")]
    Connect {
        /// The address that was tried last.
        addr: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// The proxy did not let us through.
    #[error("through the proxy {proxy}: {source}")]
    Proxy {
        /// The proxy, without its password.
        proxy: String,
        /// What it said.
        source: ProxyError,
    },
    /// Our own certificates or keys cannot be used.
    #[error(transparent)]
    Credentials(#[from] TlsError),
    /// The server and we do not trust each other, or it does not speak TLS.
    #[error("TLS with {host}: {source}")]
    Tls {
        /// The host of the URL.
        host: String,
        /// What went wrong.
        source: rustls::Error,
    },
    /// The connection broke before TLS was established.
    #[error("TLS with {host}: {source}")]
    TlsBroken {
        /// The host of the URL.
        host: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The server does not speak HTTP/2, or hung up.
    #[error("{host} does not answer in HTTP/2: {source}")]
    Http2 {
        /// The host of the URL.
        host: String,
        /// How the connection ended.
        source: Lost,
    },
    /// All of it together took too long.
    #[error("no connection to {host} within {limit:?}")]
    Timeout {
        /// The host of the URL.
        host: String,
        /// The limit that was set.
        limit: Duration,
    },
}

pub(super) async fn connect(endpoint: &Endpoint) -> Result<Connection, ConnectError> {
    let limit = endpoint.connect_timeout;
    match tokio::time::timeout(limit, dial(endpoint)).await {
        Ok(connected) => connected,
        Err(_) => Err(ConnectError::Timeout {
            host: endpoint.host().to_owned(),
            limit,
        }),
    }
}

async fn dial(endpoint: &Endpoint) -> Result<Connection, ConnectError> {
    let life = Arc::new(Life::default());
    let stream = reach(endpoint).await?;
    let peer = stream.peer_addr().ok();
    let socket = Socket::new(stream, Arc::clone(&life));
    let io = if endpoint.is_tls() {
        encrypt(endpoint, socket, &life).await?
    } else {
        Io::Plain(socket)
    };
    let (request, mut connection) = handshake(endpoint, io, &life).await?;
    let keepalive = KeepAlive::new(endpoint.settings.ping, connection.ping_pong(), &life);
    let link = Link::start(request, connection, keepalive, life);
    Ok(Connection::new(link, Arc::clone(&endpoint.origin), peer))
}

async fn reach(endpoint: &Endpoint) -> Result<TcpStream, ConnectError> {
    let (host, port) = (endpoint.host(), endpoint.port());
    match endpoint.proxy.choose(endpoint.is_tls(), host, port) {
        Some(proxy) => through(proxy, host, port).await,
        None => match endpoint.address {
            Some(addr) => one_address(addr)
                .await
                .map_err(|source| ConnectError::Connect { addr, source }),
            None => any_address(host, port)
                .await
                .map_err(|unreached| unreached.server(host)),
        },
    }
}

async fn through(proxy: &Proxy, host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let failed = |source| ConnectError::Proxy {
        proxy: proxy.to_string(),
        source,
    };
    let mut stream = any_address(proxy.host(), proxy.port())
        .await
        .map_err(|unreached| failed(unreached.into()))?;
    match proxy::tunnel(&mut stream, proxy, host, port).await {
        Ok(()) => Ok(stream),
        Err(source) => Err(failed(source)),
    }
}

/// Why no address of a host took a connection.
enum Unreached {
    Name(io::Error),
    Address(SocketAddr, io::Error),
}

impl Unreached {
    fn server(self, host: &str) -> ConnectError {
        match self {
            Self::Name(source) => ConnectError::Resolve {
                host: host.to_owned(),
                source,
            },
            Self::Address(addr, source) => ConnectError::Connect { addr, source },
        }
    }
}

impl From<Unreached> for ProxyError {
    fn from(unreached: Unreached) -> Self {
        match unreached {
            Unreached::Name(source) => Self::Resolve(source),
            Unreached::Address(addr, source) => Self::Connect { addr, source },
        }
    }
}

/// Tries the addresses of a host in the resolver's order.
async fn any_address(host: &str, port: u16) -> Result<TcpStream, Unreached> {
    let mut last = Unreached::Name(io::ErrorKind::NotFound.into());
    for addr in lookup_host((host, port)).await.map_err(Unreached::Name)? {
        match one_address(addr).await {
            Ok(stream) => return Ok(stream),
            Err(source) => {
                tracing::debug!(%addr, error = %source, "cannot connect");
                last = Unreached::Address(addr, source);
            }
        }
    }
    Err(last)
}

async fn one_address(addr: SocketAddr) -> io::Result<TcpStream> {
    let attempt = tokio::time::timeout(ATTEMPT_LIMIT, TcpStream::connect(addr)).await;
    let stream = attempt.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn encrypt(
    endpoint: &Endpoint,
    socket: Socket,
    life: &Arc<Life>,
) -> Result<Io, ConnectError> {
    let host = endpoint.host();
    let tls = match &endpoint.tls {
        Some(tls) => Arc::clone(tls),
        None => Arc::new(ClientTls::system()?),
    };
    let stream = tls
        .connector()?
        .connect(ClientTls::server_name(host)?, socket)
        .await;
    let stream = stream.map_err(|error| {
        let host = host.to_owned();
        match error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<rustls::Error>())
        {
            Some(cause) => ConnectError::Tls {
                host,
                source: cause.clone(),
            },
            None => ConnectError::TlsBroken {
                host,
                source: error,
            },
        }
    })?;
    Ok(Io::Tls(
        Box::new(TlsStream::Client(stream)),
        Arc::clone(life),
    ))
}

type Established = (SendRequest<Payload>, H2Connection<Io, Payload>);

async fn handshake(
    endpoint: &Endpoint,
    io: Io,
    life: &Arc<Life>,
) -> Result<Established, ConnectError> {
    let established = async {
        let (request, mut connection) = endpoint.settings.client().handshake(io).await?;
        settled(&request, &mut connection).await?;
        Ok((request, connection))
    };
    established.await.map_err(|error: h2::Error| {
        let host = endpoint.host().to_owned();
        match life.tls_error() {
            Some(cause) => ConnectError::Tls {
                host,
                source: cause.clone(),
            },
            None => ConnectError::Http2 {
                host,
                source: Lost::from(&error),
            },
        }
    })
}

/// Waits for the server's SETTINGS, and with them its limit on streams. It also proves that the
/// server speaks HTTP/2 and, in TLS, that it took our certificate.
async fn settled(
    request: &SendRequest<Payload>,
    connection: &mut H2Connection<Io, Payload>,
) -> Result<(), h2::Error> {
    let mut connection = pin!(connection);
    poll_fn(|cx| {
        let ended = connection.as_mut().poll(cx);
        if request.current_max_send_streams() > 0 {
            return Poll::Ready(Ok(()));
        }
        ended.map(|ended| ended.and(Err(h2::Reason::NO_ERROR.into())))
    })
    .await
}
