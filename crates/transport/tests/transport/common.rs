//! What the tests of this crate share: a server whose streams come out of a channel, and raw
//! HTTP/2 peers on both sides.
#![allow(unreachable_pub, reason = "shared between the files of one binary")]

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::client::SendRequest;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request};
use tidegate_transport::{
    Buffered, Connection, Endpoint, Ledger, Listener, Lost, Payload, Received, RecvHalf, SendHalf,
    Server, ServerStream, Shards, StreamHandler, listen,
};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;

pub const PATH: &str = "/test.Streams/Open";

/// Fails a test that waits for something that does not come.
pub async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), what)
        .await
        .expect("it should have happened")
}

pub fn payload(data: &'static [u8]) -> Payload {
    Payload::untracked(vec![Bytes::from_static(data)])
}

pub fn ledger() -> Arc<Ledger> {
    Ledger::new(Buffered::new())
}

/// Reads to the end and returns what came, with the end.
pub async fn read_all(recv: &mut RecvHalf) -> (Vec<u8>, Received) {
    let mut all = Vec::new();
    loop {
        match recv.recv().await {
            Received::Data(data) => {
                recv.release(data.len());
                all.extend_from_slice(&data);
            }
            end => return (all, end),
        }
    }
}

pub async fn lost(recv: &mut RecvHalf) -> Lost {
    match soon(read_all(recv)).await.1 {
        Received::Lost(lost) => lost,
        other => panic!("expected a loss, got {other:?}"),
    }
}

/// A server of ours. Everything of it ends with it.
pub struct TestServer {
    pub addr: SocketAddr,
    pub streams: mpsc::Receiver<ServerStream>,
    pub shutdown: CancellationToken,
    pub abort: CancellationToken,
    pub shards: Arc<Shards>,
    _tasks: JoinSet<()>,
}

struct Channel(mpsc::Sender<ServerStream>);

impl StreamHandler for Channel {
    fn wants(&self, path: &str) -> bool {
        path == PATH
    }

    fn handle(&self, stream: ServerStream) {
        self.0.try_send(stream).expect("the test takes its streams");
    }
}

impl TestServer {
    pub fn plain() -> Self {
        Self::start(Server::default(), Routes::default())
    }

    pub fn start(server: Server, unary: Routes) -> Self {
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let addr = listener.local_addr().unwrap();
        let (sender, streams) = mpsc::channel(20_000);
        let shutdown = CancellationToken::new();
        let abort = server.abort.clone();
        let shards = Arc::new(Shards::new(3).unwrap());
        let mut tasks = JoinSet::new();
        let accept = Accept {
            listener,
            server: Arc::new(server),
            handler: Arc::new(Channel(sender)),
            unary,
            shutdown: shutdown.clone(),
            shards: Arc::clone(&shards),
        };
        tasks.spawn(accept.run());
        Self {
            addr,
            streams,
            shutdown,
            abort,
            shards,
            _tasks: tasks,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    pub async fn connect(&self) -> Connection {
        soon(Endpoint::parse(&self.url()).unwrap().connect())
            .await
            .unwrap()
    }

    pub async fn stream(&mut self) -> ServerStream {
        soon(self.streams.recv()).await.unwrap()
    }
}

struct Accept {
    listener: Listener,
    server: Arc<Server>,
    handler: Arc<dyn StreamHandler>,
    unary: Routes,
    shutdown: CancellationToken,
    shards: Arc<Shards>,
}

impl Accept {
    async fn run(self) {
        loop {
            let (io, _) = self.listener.accept().await;
            let shard = self.shards.get(0);
            let serve = Arc::clone(&self.server).serve(
                io,
                shard.clone(),
                Arc::clone(&self.handler),
                self.unary.clone(),
                self.shutdown.clone(),
            );
            shard.spawn("connection", serve);
        }
    }
}

/// A stream of ours through a server of ours, both ends.
pub struct Pair {
    pub server: TestServer,
    pub connection: Connection,
    pub up: SendHalf,
    pub down: RecvHalf,
    pub back: SendHalf,
    pub recv: RecvHalf,
}

impl Pair {
    pub async fn open() -> Self {
        let mut server = TestServer::plain();
        let connection = server.connect().await;
        let (up, down, back, recv) = open(&mut server, &connection).await;
        Self {
            server,
            connection,
            up,
            down,
            back,
            recv,
        }
    }
}

/// Opens a stream and answers it.
pub async fn open(
    server: &mut TestServer,
    connection: &Connection,
) -> (SendHalf, RecvHalf, SendHalf, RecvHalf) {
    let (up, head) = connection.open(PATH, HeaderMap::new()).unwrap();
    let ServerStream { recv, respond, .. } = server.stream().await;
    let back = respond.headers(HeaderMap::new()).unwrap();
    let (_, down) = soon(head).await.unwrap();
    (up, down, back, recv)
}

/// A raw HTTP/2 server with one connection, moved by a task of its own.
pub struct RawServer {
    pub requests: mpsc::Receiver<(Request<RecvStream>, SendResponse<Bytes>)>,
    pub control: mpsc::Sender<Control>,
    _task: JoinSet<()>,
}

/// What a raw server can be told.
pub enum Control {
    GracefulShutdown,
    AbruptShutdown(Reason),
    /// Closes the socket without a word of HTTP/2.
    Kill,
    /// Moves nothing any more, and keeps the socket.
    Freeze,
}

impl RawServer {
    /// Starts one with `builder`, and connects one of ours to it.
    pub async fn start(
        builder: h2::server::Builder,
        endpoint: impl FnOnce(Endpoint) -> Endpoint,
    ) -> (Self, Connection) {
        let listener = listen(([127, 0, 0, 1], 0).into()).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (sender, requests) = mpsc::channel(2_000);
        let (control, orders) = mpsc::channel(1);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let (socket, _) = listener.accept().await;
            let connection = builder.handshake(socket).await.unwrap();
            move_raw(connection, sender, orders).await;
        });
        let endpoint = endpoint(Endpoint::parse(&url).unwrap());
        let connection = soon(endpoint.connect()).await.unwrap();
        (
            Self {
                requests,
                control,
                _task: task,
            },
            connection,
        )
    }

    pub async fn request(&mut self) -> (Request<RecvStream>, SendResponse<Bytes>) {
        soon(self.requests.recv()).await.unwrap()
    }

    pub async fn order(&self, order: Control) {
        self.control
            .send(order)
            .await
            .unwrap_or_else(|_| panic!("the raw server is gone"));
    }
}

async fn move_raw(
    mut connection: h2::server::Connection<TcpStream, Bytes>,
    requests: mpsc::Sender<(Request<RecvStream>, SendResponse<Bytes>)>,
    mut orders: mpsc::Receiver<Control>,
) {
    loop {
        tokio::select! {
            request = connection.accept() => match request {
                Some(Ok(request)) => requests.send(request).await.unwrap_or(()),
                Some(Err(_)) | None => return,
            },
            Some(order) = orders.recv() => match order {
                Control::GracefulShutdown => connection.graceful_shutdown(),
                Control::AbruptShutdown(reason) => connection.abrupt_shutdown(reason),
                Control::Kill => return,
                Control::Freeze => std::future::pending().await,
            },
        }
    }
}

/// A raw HTTP/2 client on a connection to `addr`.
pub async fn raw_client(
    addr: SocketAddr,
    builder: &h2::client::Builder,
) -> (SendRequest<Bytes>, JoinSet<Result<(), h2::Error>>) {
    let socket = TcpStream::connect(addr).await.unwrap();
    let (request, connection) = builder.handshake(socket).await.unwrap();
    let mut task = JoinSet::new();
    task.spawn(connection);
    (request, task)
}

pub fn raw_request() -> Request<()> {
    Request::post(format!("http://localhost{PATH}"))
        .header("content-type", "application/grpc")
        .body(())
        .unwrap()
}
