//! `/healthz`, `/readyz` and `/metrics`, for machines on the inside.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tidegate_transport::{Listener, listen};
use tokio::net::{TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections served at once; more wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long a caller may take to send its request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// What the daemon tells about itself.
pub trait Health: Send + Sync + 'static {
    /// Whether it does its work, in a word; if not, why.
    ///
    /// # Errors
    ///
    /// A sentence for a person when it does not, or not yet.
    fn ready(&self) -> Result<&'static str, String>;

    /// Every metric, in the text format of Prometheus (OpenMetrics).
    fn metrics(&self) -> String;
}

/// The admin server, bound to its address.
#[derive(Debug)]
pub struct AdminServer {
    listener: Listener,
}

impl AdminServer {
    /// Serves what connects to `listener`.
    pub const fn new(listener: Listener) -> Self {
        Self { listener }
    }

    /// Binds `address`, which is `HOST:PORT`; port 0 is a free one.
    ///
    /// # Errors
    ///
    /// What the system says when the address cannot be used.
    pub async fn bind(address: &str) -> std::io::Result<Self> {
        let mut outcome = Err(std::io::ErrorKind::NotFound.into());
        for address in lookup_host(address).await? {
            outcome = listen(address).map(Self::new);
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    }

    /// Tells where it listens.
    ///
    /// # Errors
    ///
    /// What the system says when it does not know.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until it is dropped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes every connection.
    pub async fn serve(self, health: Arc<dyn Health>) {
        if let Ok(address) = self.local_addr() {
            tracing::info!(%address, "admin listening on {address}");
        }
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        let mut connections = JoinSet::new();
        while let Ok(place) = Arc::clone(&places).acquire_owned().await {
            while connections.try_join_next().is_some() {}
            let (stream, _) = self.listener.accept().await;
            let health = Arc::clone(&health);
            connections.spawn(async move {
                serve_one(stream, health).await;
                drop(place);
            });
        }
    }
}

async fn serve_one(stream: TcpStream, health: Arc<dyn Health>) {
    let service = service_fn(|request| {
        let answer = answer(&request, health.as_ref());
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an admin connection broke");
    }
}

fn answer(request: &Request<Incoming>, health: &dyn Health) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "use GET\n".to_owned());
    }
    match request.uri().path() {
        "/healthz" => response(StatusCode::OK, TEXT, "ok\n".to_owned()),
        "/readyz" => match health.ready() {
            Ok(word) => response(StatusCode::OK, TEXT, format!("{word}\n")),
            Err(why) => response(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n")),
        },
        "/metrics" => response(StatusCode::OK, METRICS, health.metrics()),
        _ => response(
            StatusCode::NOT_FOUND,
            TEXT,
            "there are /healthz, /readyz and /metrics\n".to_owned(),
        ),
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    struct Fixed(Result<&'static str, String>);

    impl Health for Fixed {
        fn ready(&self) -> Result<&'static str, String> {
            self.0.clone()
        }

        fn metrics(&self) -> String {
            "# EOF\n".to_owned()
        }
    }

    async fn get(path: &str, health: Fixed) -> String {
        let server = AdminServer::bind("127.0.0.1:0").await.unwrap();
        let address = server.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(server.serve(Arc::new(health)));
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        text
    }

    #[tokio::test]
    async fn each_path_answers() {
        let ready = || Fixed(Ok("ready"));
        assert!(get("/healthz", ready()).await.starts_with("HTTP/1.1 200"));
        assert!(get("/readyz", ready()).await.ends_with("ready\n"));
        assert!(get("/metrics", ready()).await.ends_with("# EOF\n"));
        assert!(get("/", ready()).await.starts_with("HTTP/1.1 404"));
        let waiting = get("/readyz", Fixed(Err("no session".to_owned()))).await;
        assert!(waiting.starts_with("HTTP/1.1 503"), "{waiting}");
        assert!(waiting.ends_with("no session\n"), "{waiting}");
    }
}
