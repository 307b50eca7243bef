//! A server that joins each stream to a target, and clients of it.
#![allow(unreachable_pub, reason = "shared between the files of one binary")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidegate_bridge::{
    End, FrameEnd, Handle, Opened, Outcome, Plug, RpcKind, SocketEnd, Tunnel, harden,
};
use tidegate_lifecycle::cause::Origin;
use tidegate_lifecycle::id::{HopName, SandboxName};
use tidegate_lifecycle::leg::{Leg, Orientation};
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::relay::{Relay, Side};
use tidegate_lifecycle::{Capabilities, Target as StreamTarget};
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::Target;
use tidegate_transport::{
    Buffered, Connection, Endpoint, Received, ServerStream, Settings, Shard, Shards, StreamHandler,
    listen,
};
use tidegate_wire::frame::{ForwardInit, Frame, FrameLimit, FrameReader};
use tidegate_wire::metadata;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

/// A server in this process.
pub struct Server {
    pub address: SocketAddr,
    /// What its tunnels hold.
    pub buffered: Arc<Buffered>,
    served: mpsc::Receiver<Outcome>,
    shards: Shards,
    _stop: DropGuard,
}

impl Server {
    /// Serves one connection, whose streams lead to `target`.
    pub fn start(
        target: &Target,
        agreed: Capabilities,
        settings: Settings,
        limits: StreamLimits,
    ) -> Self {
        let shards = Shards::new(1).unwrap();
        let buffered = Buffered::new();
        let (outcomes, served) = mpsc::channel(16);
        let joiner = Arc::new(Joiner {
            target: target.address(),
            agreed,
            limits,
            buffered: Arc::clone(&buffered),
            shard: shards.get(0),
            outcomes,
        });
        let stop = CancellationToken::new();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let (shard, shutdown) = (shards.get(0), stop.clone());
        let server = tidegate_transport::Server {
            settings,
            ..tidegate_transport::Server::default()
        };
        shards.get(0).spawn("accept", async move {
            let (io, _) = listener.accept().await;
            let unary = tonic::service::Routes::default();
            Arc::new(server)
                .serve(io, shard, joiner, unary, shutdown)
                .await;
        });
        Self {
            address,
            buffered,
            served,
            shards,
            _stop: stop.drop_guard(),
        }
    }

    /// How the next stream ended.
    pub async fn outcome(&mut self) -> Outcome {
        bounded(self.served.recv()).await.unwrap()
    }
}

/// The first message of a client that offers `capabilities`.
pub fn init(capabilities: Capabilities) -> Bytes {
    let sandbox = SandboxName::parse("local").unwrap();
    let mut init = ForwardInit::new(sandbox, StreamTarget::tcp("localhost", 1).unwrap());
    init.capabilities = capabilities;
    init.encode()
}

/// A client and a server in one process, and the streams between them.
pub struct Hop {
    pub server: Server,
    connection: Connection,
    agreed: Capabilities,
    ended: mpsc::Receiver<Outcome>,
    report: mpsc::Sender<Outcome>,
}

impl Hop {
    pub async fn new(target: &Target, agreed: Capabilities) -> Self {
        let limits = StreamLimits::default();
        let server = Server::start(target, agreed, Settings::default(), limits);
        let url = format!("http://{}", server.address);
        let (report, ended) = mpsc::channel(16);
        Self {
            server,
            connection: Endpoint::parse(&url).unwrap().connect().await.unwrap(),
            agreed,
            ended,
            report,
        }
    }

    /// Opens a stream, and the local socket that leads into it.
    pub async fn open(&mut self) -> Socket {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let local = Socket::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        harden(&accepted).unwrap();
        let (send, head) = self
            .connection
            .open(metadata::FORWARD_TCP, http::HeaderMap::new())
            .unwrap();
        let total = &self.server.buffered;
        let kind = RpcKind::ForwardClient;
        let remote = FrameEnd::opened(kind, send, head, init(self.agreed), None, total);
        let plug = Plug::Tcp(Arc::new(accepted));
        let down = SocketEnd::new(Side::Downstream, plug, total);
        let relay = relay(
            Leg::socket(),
            Leg::opener(Orientation::Forward, None),
            StreamLimits::default(),
            Origin::Client,
        );
        let report = self.report.clone();
        self.server.shards.get(0).spawn(
            "client",
            async move { run(down, remote, relay, report).await },
        );
        local
    }

    pub async fn server_outcome(&mut self) -> Outcome {
        self.server.outcome().await
    }

    pub async fn client_outcome(&mut self) -> Outcome {
        bounded(self.ended.recv()).await.unwrap()
    }

    pub async fn both_finish(&mut self) {
        assert_eq!(self.server_outcome().await.end, None);
        assert_eq!(self.client_outcome().await.end, None);
    }
}

/// A server that joins each stream to one target.
struct Joiner {
    target: SocketAddr,
    agreed: Capabilities,
    limits: StreamLimits,
    buffered: Arc<Buffered>,
    shard: Shard,
    outcomes: mpsc::Sender<Outcome>,
}

impl StreamHandler for Joiner {
    fn wants(&self, path: &str) -> bool {
        path == metadata::FORWARD_TCP
    }

    fn handle(&self, stream: ServerStream) {
        let (target, offered, limits) = (self.target, self.agreed, self.limits);
        let (buffered, outcomes) = (Arc::clone(&self.buffered), self.outcomes.clone());
        self.shard.spawn("server", async move {
            let ServerStream {
                mut recv, respond, ..
            } = stream;
            let mut reader = FrameReader::new(FrameLimit::Legacy);
            let mut held = 0;
            let init = loop {
                if let Some(Frame::Init(init)) = reader.next().unwrap() {
                    break ForwardInit::parse(&init).unwrap();
                }
                let Received::Data(data) = recv.recv().await else {
                    panic!("no init")
                };
                held += data.len();
                reader.push(data);
            };
            recv.release(held - reader.buffered());
            let agreed = offered.intersect(init.capabilities);
            let upstream = TcpStream::connect(target).await.unwrap();
            harden(&upstream).unwrap();
            let kind = RpcKind::ForwardServer;
            let mut down = FrameEnd::accepted(kind, respond, recv, reader, agreed, &buffered);
            down.path_opened(&Opened::on(Capabilities::STREAM));
            let up = SocketEnd::new(Side::Upstream, Plug::Tcp(Arc::new(upstream)), &buffered);
            let leg = Leg::acceptor(Orientation::Forward, agreed.half_close());
            let relay = relay(leg, Leg::socket(), limits, Origin::Gateway);
            run(down, up, relay, outcomes).await;
        });
    }
}

fn relay(down: Leg, up: Leg, limits: StreamLimits, origin: Origin) -> Relay {
    Relay::new(
        down,
        up,
        limits,
        origin,
        HopName::new("here"),
        Instant::now(),
    )
}

async fn run<D, U>(down: D, up: U, relay: Relay, report: mpsc::Sender<Outcome>)
where
    D: End<Item = Bytes>,
    U: End<Item = Bytes>,
{
    let now = Instant::now();
    let mut tunnel = Tunnel::new(down, up, relay, Handle::new(now), now);
    let outcome = tunnel.run().await;
    report.send(outcome).await.unwrap();
    tunnel.linger().await;
}

async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .expect("within 30 s")
}
