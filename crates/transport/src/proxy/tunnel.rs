//! HTTP CONNECT: asking a proxy for a connection to somebody else.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::{Proxy, host_port};

/// Bytes of an answer that are read before the proxy is taken for something else.
const ANSWER_LIMIT: usize = 8 * 1024;

/// Why a proxy gave no connection.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// Its name leads to no address.
    #[error("its name cannot be resolved: {0}")]
    Resolve(#[source] io::Error),
    /// None of its addresses takes a connection. Tells about the last one.
    #[error("cannot connect to it at {addr}: {source}")]
    Connect {
        /// The address that was tried last.
        addr: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// It answered, and not with success. 407 asks for a user and password.
    #[error("it refused with status {0}")]
    Refused(u16),
    /// It answered in something that is not HTTP/1.
    #[error("it does not answer like an HTTP proxy")]
    NotHttp,
    /// Its connection broke.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Asks `proxy` over `stream` for a connection to `host`, which `stream` is from then on.
pub(crate) async fn tunnel<S>(
    stream: &mut S,
    proxy: &Proxy,
    host: &str,
    port: u16,
) -> Result<(), ProxyError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let target = host_port(host, port);
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n");
    if let Some(authorization) = &proxy.authorization {
        request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await?;
    match status(&answer(stream).await?) {
        Some(200..=299) => Ok(()),
        Some(status) => Err(ProxyError::Refused(status)),
        None => Err(ProxyError::NotHttp),
    }
}

/// Reads up to the empty line and not a byte further: what follows is the server's. Byte by byte,
/// which once per connection costs nothing.
async fn answer<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Vec<u8>, ProxyError> {
    let mut answer = Vec::with_capacity(256);
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() == ANSWER_LIMIT {
            return Err(ProxyError::NotHttp);
        }
        answer.push(stream.read_u8().await?);
    }
    Ok(answer)
}

/// Reads the status out of `HTTP/1.1 200 ...`.
fn status(answer: &[u8]) -> Option<u16> {
    let line = answer.strip_prefix(b"HTTP/1.")?;
    let status = line.get(2..5).filter(|_| line.get(1) == Some(&b' '))?;
    std::str::from_utf8(status).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn check(answer: &[u8]) -> (Result<(), ProxyError>, String, Vec<u8>) {
        let (mut ours, mut theirs) = tokio::io::duplex(16 * 1024);
        theirs.write_all(answer).await.unwrap();
        theirs.shutdown().await.unwrap();
        let proxy = Proxy::parse("http://me:secret@squid").unwrap();
        let result = tunnel(&mut ours, &proxy, "::1", 443).await;
        let mut rest = Vec::new();
        ours.read_to_end(&mut rest).await.unwrap();
        drop(ours);
        let mut request = String::new();
        theirs.read_to_string(&mut request).await.unwrap();
        (result, request, rest)
    }

    #[tokio::test]
    async fn what_follows_the_answer_is_left_to_the_server() {
        let (result, request, rest) = check(b"HTTP/1.1 200 Fine\r\nVia: x\r\n\r\nhello").await;
        assert!(result.is_ok());
        assert_eq!(rest, b"hello");
        assert_eq!(
            request,
            "CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\
             Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n"
        );
    }

    #[tokio::test]
    async fn refusals_are_told_apart() {
        let (result, ..) = check(b"HTTP/1.0 407 Who are you\r\n\r\n").await;
        assert!(matches!(result, Err(ProxyError::Refused(407))));
        let (result, ..) = check(b"SSH-2.0-OpenSSH\r\n\r\n").await;
        assert!(matches!(result, Err(ProxyError::NotHttp)));
        let (result, ..) = check(&[b'x'; ANSWER_LIMIT + 1]).await;
        assert!(matches!(result, Err(ProxyError::NotHttp)));
        let (result, ..) = check(b"HTTP/1.1 200").await;
        assert!(matches!(result, Err(ProxyError::Io(_))));
    }
}
