//! Through an HTTP proxy that understands CONNECT and nothing else.

use std::net::SocketAddr;

use http::HeaderMap;
use tidegate_transport::proxy::ProxyError;
use tidegate_transport::{ConnectError, Endpoint, Proxy, ProxyRules, Received, listen};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::common::*;

/// Answers every CONNECT with `status`, and carries bytes where it is 200.
struct TestProxy {
    addr: SocketAddr,
    requests: mpsc::Receiver<String>,
    _tasks: JoinSet<()>,
}

impl TestProxy {
    fn start(status: &'static str) -> Self {
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            loop {
                let (client, _) = listener.accept().await;
                carry(client, status, &sender).await;
            }
        });
        Self {
            addr,
            requests,
            _tasks: tasks,
        }
    }

    fn rules(&self) -> ProxyRules {
        let proxy = Proxy::parse(&format!("http://me:secret@{}", self.addr)).unwrap();
        ProxyRules::explicit(proxy)
    }
}

async fn carry(mut client: TcpStream, status: &str, requests: &mpsc::Sender<String>) {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(client.read_u8().await.unwrap());
    }
    let request = String::from_utf8(request).unwrap();
    let target = request.split(' ').nth(1).unwrap().to_owned();
    requests.send(request).await.unwrap();
    client
        .write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    if status.starts_with("200") {
        let mut server = TcpStream::connect(target).await.unwrap();
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}

#[tokio::test]
async fn a_stream_through_a_proxy() {
    let mut proxy = TestProxy::start("200 Connection established");
    let mut server = TestServer::plain();
    let endpoint = Endpoint::parse(&server.url())
        .unwrap()
        .with_proxy(proxy.rules());
    let connection = soon(endpoint.connect()).await.unwrap();
    let request = soon(proxy.requests.recv()).await.unwrap();
    assert!(
        request.starts_with(&format!("CONNECT {} HTTP/1.1\r\n", server.addr)),
        "{request}"
    );
    assert!(request.contains("Proxy-Authorization: Basic "), "{request}");

    let (mut up, _head) = connection.open(PATH, HeaderMap::new()).unwrap();
    up.send(payload(b"through")).unwrap();
    up.finish().unwrap();
    let mut stream = server.stream().await;
    assert_eq!(
        soon(read_all(&mut stream.recv)).await,
        (b"through".to_vec(), Received::End)
    );
}

#[tokio::test]
async fn a_refusal_says_who_refused() {
    let proxy = TestProxy::start("407 Proxy Authentication Required");
    let endpoint = Endpoint::parse("http://far.example.org")
        .unwrap()
        .with_proxy(proxy.rules());
    let error = soon(endpoint.connect()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "through the proxy {}: it refused with status 407",
            proxy.addr
        )
    );
    assert!(matches!(
        error,
        ConnectError::Proxy {
            source: ProxyError::Refused(407),
            ..
        }
    ));
}

#[tokio::test]
async fn an_exception_is_connected_to_directly() {
    let proxy = TestProxy::start("200 OK");
    let server = TestServer::plain();
    let lookup = |name: &str| match name {
        "http_proxy" => Some(proxy.addr.to_string()),
        "no_proxy" => Some("127.0.0.0/8".to_owned()),
        _ => None,
    };
    let rules = ProxyRules::from_variables(lookup).unwrap();
    let endpoint = Endpoint::parse(&server.url()).unwrap().with_proxy(rules);
    soon(endpoint.connect()).await.unwrap();
    assert!(proxy.requests.is_empty());
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_named_as_one() {
    let closed = listen(([127, 0, 0, 1], 0).into()).unwrap();
    let addr = closed.local_addr().unwrap();
    drop(closed);
    for (proxy, unresolved) in [
        (addr.to_string(), false),
        ("proxy.invalid:1".to_owned(), true),
    ] {
        let endpoint = Endpoint::parse("http://gateway.example.com")
            .unwrap()
            .with_proxy(ProxyRules::explicit(Proxy::parse(&proxy).unwrap()));
        let error = soon(endpoint.connect()).await.unwrap_err();
        let said = error.to_string();
        assert!(
            said.starts_with(&format!("through the proxy {proxy}: ")),
            "{said}"
        );
        let ConnectError::Proxy { source, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(
            matches!(source, ProxyError::Resolve(_)),
            unresolved,
            "{source}"
        );
    }
}
