//! Two tunnels over real HTTP/2: local program ─ tunnel ─ frames ─ tunnel ─ target.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_bridge::End as _;
use tidegate_bridge::{
    FrameEnd, Handle, Opened, Outcome, Plug, RpcKind, SocketEnd, Tunnel, harden,
};
use tidegate_lifecycle::cause::{Cause, Origin, Reason};
use tidegate_lifecycle::id::{HopName, SandboxName};
use tidegate_lifecycle::leg::{Leg, Orientation};
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::relay::{Relay, Side};
use tidegate_lifecycle::{Capabilities, Target as StreamTarget};
use tidegate_testkit::content::Content;
use tidegate_testkit::record::Ended;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::Target;
use tidegate_transport::{
    Buffered, Connection, Endpoint, Received, Server, ServerStream, Shard, Shards, StreamHandler,
    listen,
};
use tidegate_wire::frame::{ForwardInit, Frame, FrameLimit, FrameReader};
use tidegate_wire::metadata;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// What the two neighbours agree on, in the three ways there are.
fn rows() -> [Capabilities; 3] {
    [
        Capabilities::NONE,
        Capabilities::from_names(["stream-half-close-v1"]),
        Capabilities::STREAM,
    ]
}

#[tokio::test]
async fn pf_01_a_client_that_ends_first_gets_its_answer() {
    for agreed in rows() {
        let target = Target::answer_after_end().unwrap();
        let mut hop = Hop::new(&target, agreed).await;
        let local = hop.open().await;
        local.write(b"hello").await.unwrap();
        local.shutdown_write().unwrap();
        let seen = local.read_to_end_soon().await;
        assert_eq!(
            (&seen.head[..], seen.read_end),
            (&b"OK 5\n"[..], Some(Ended::Eof))
        );
        hop.both_finish().await;
    }
}

#[tokio::test]
async fn pf_02_a_target_that_ends_first_gets_the_rest_of_the_upload() {
    for agreed in &rows()[1..] {
        let content = Content::new(1 << 20, 7);
        let target = Target::finish_first(content).unwrap();
        let mut hop = Hop::new(&target, *agreed).await;
        let local = hop.open().await;
        let download = local.read_to_end_soon().await;
        assert_eq!(
            (download.bytes_read, download.read_end),
            (1 << 20, Some(Ended::Eof))
        );
        local.write_content(content).await.unwrap();
        local.shutdown_write().unwrap();
        let upload = target.next().await.until_read_end().await;
        assert_eq!(
            (upload.sha256, upload.read_end),
            (content.sha256(), Some(Ended::Eof))
        );
        hop.both_finish().await;
    }
}

#[tokio::test]
async fn pf_04_the_tail_reaches_a_slow_reader() {
    let content = Content::new(8 << 20, 3);
    let target = Target::slow_sink(256 * 1024, Duration::from_millis(20)).unwrap();
    let mut hop = Hop::new(&target, Capabilities::STREAM).await;
    let local = hop.open().await;
    local.write_content(content).await.unwrap();
    local.shutdown_write().unwrap();
    let upload = target.next().await.until_read_end().await;
    assert_eq!(
        (upload.sha256, upload.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    drop(local);
    hop.both_finish().await;
}

#[tokio::test]
async fn pf_13_a_targets_reset_is_no_end_of_file() {
    for agreed in rows() {
        let target = Target::resetter(1000).unwrap();
        let mut hop = Hop::new(&target, agreed).await;
        let local = hop.open().await;
        assert_eq!(local.read(1000).await.len(), 1000);
        target.next().await.cue();
        assert_eq!(local.read_to_end_soon().await.read_end, Some(Ended::Reset));
        let cause = Cause::Reset {
            origin: Origin::Target,
            reason: Reason::TargetReset,
        };
        assert_eq!(hop.server_outcome().await.cause(), cause);
        assert_eq!(hop.client_outcome().await.cause(), cause);
    }
}

#[tokio::test]
async fn pf_14_a_clients_reset_is_no_end_of_file() {
    for agreed in rows() {
        let target = Target::sink().unwrap();
        let mut hop = Hop::new(&target, agreed).await;
        let local = hop.open().await;
        local.write(&[1; 100_000]).await.unwrap();
        let connection = target.next().await;
        connection.until_read(100_000).await;
        local.reset();
        assert_eq!(
            connection.until_read_end().await.read_end,
            Some(Ended::Reset)
        );
        let cancelled = Cause::Reset {
            origin: Origin::Client,
            reason: Reason::ClientCancelled,
        };
        assert_eq!(hop.server_outcome().await.cause(), cancelled);
    }
}

#[tokio::test]
async fn fc_04_a_reset_gets_through_a_stream_that_is_blocked_at_every_hop() {
    let target = Target::never_reader().unwrap();
    let mut hop = Hop::new(&target, Capabilities::STREAM).await;
    let local = hop.open().await;
    local
        .write_until_blocked(Duration::from_millis(300))
        .await
        .unwrap();
    let connection = target.next().await;
    local.reset();
    assert!(
        connection
            .until_reset(Duration::from_secs(30))
            .await
            .was_reset()
    );
    hop.server_outcome().await;
    hop.client_outcome().await;
}

#[tokio::test]
async fn pf_09_a_server_that_speaks_first_is_heard() {
    let target = Target::banner(vec![b'!'; 64]).unwrap();
    let mut hop = Hop::new(&target, Capabilities::STREAM).await;
    let local = hop.open().await;
    assert_eq!(local.read(64).await, vec![b'!'; 64]);
}

#[tokio::test]
async fn bulk_is_exact_both_ways_at_once() {
    let target = Target::echo().unwrap();
    let mut hop = Hop::new(&target, Capabilities::STREAM).await;
    let local = Arc::new(hop.open().await);
    let content = Content::new(32 << 20, 11);
    let writer = Arc::clone(&local);
    let write = async move {
        writer.write_content(content).await.unwrap();
        writer.shutdown_write().unwrap();
    };
    let ((), seen) = tokio::join!(write, local.read_to_end());
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    hop.both_finish().await;
    assert_eq!(hop.buffered.get(), 0);
}

/// A client and a server in one process, and the streams between them.
struct Hop {
    connection: Connection,
    agreed: Capabilities,
    buffered: Arc<Buffered>,
    served: mpsc::Receiver<Outcome>,
    ended: mpsc::Receiver<Outcome>,
    report: mpsc::Sender<Outcome>,
    shards: Shards,
    _stop: tokio_util::sync::DropGuard,
}

impl Hop {
    async fn new(target: &Target, agreed: Capabilities) -> Self {
        let shards = Shards::new(1).unwrap();
        let buffered = Buffered::new();
        let (outcomes, served) = mpsc::channel(16);
        let joiner = Arc::new(Joiner {
            target: target.address(),
            agreed,
            buffered: Arc::clone(&buffered),
            shard: shards.get(0),
            outcomes,
        });
        let stop = CancellationToken::new();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (shard, shutdown) = (shards.get(0), stop.clone());
        shards.get(0).spawn("accept", async move {
            let (io, _) = listener.accept().await;
            let unary = tonic::service::Routes::default();
            Arc::new(Server::default())
                .serve(io, shard, joiner, unary, shutdown)
                .await;
        });
        let (report, ended) = mpsc::channel(16);
        let connection = Endpoint::parse(&url).unwrap().connect().await.unwrap();
        Self {
            connection,
            agreed,
            buffered,
            served,
            ended,
            report,
            shards,
            _stop: stop.drop_guard(),
        }
    }

    /// Opens a stream, and the local socket that leads into it.
    async fn open(&mut self) -> Socket {
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
        let sandbox = SandboxName::parse("local").unwrap();
        let mut init = ForwardInit::new(sandbox, StreamTarget::tcp("localhost", 1).unwrap());
        init.capabilities = self.agreed;
        let remote = FrameEnd::opened(
            RpcKind::ForwardClient,
            send,
            head,
            init.encode(),
            None,
            &self.buffered,
        );
        let plug = Plug::Tcp(Arc::new(accepted));
        let down = SocketEnd::new(Side::Downstream, plug, &self.buffered);
        let relay = relay(
            Leg::socket(),
            Leg::opener(Orientation::Forward, None),
            Origin::Client,
        );
        let report = self.report.clone();
        self.shards.get(0).spawn(
            "client",
            async move { run(down, remote, relay, report).await },
        );
        local
    }

    async fn server_outcome(&mut self) -> Outcome {
        bounded(self.served.recv()).await.unwrap()
    }

    async fn client_outcome(&mut self) -> Outcome {
        bounded(self.ended.recv()).await.unwrap()
    }

    async fn both_finish(&mut self) {
        assert_eq!(self.server_outcome().await.end, None);
        assert_eq!(self.client_outcome().await.end, None);
    }
}

/// A server that joins each stream to one target.
struct Joiner {
    target: std::net::SocketAddr,
    agreed: Capabilities,
    buffered: Arc<Buffered>,
    shard: Shard,
    outcomes: mpsc::Sender<Outcome>,
}

impl StreamHandler for Joiner {
    fn wants(&self, path: &str) -> bool {
        path == metadata::FORWARD_TCP
    }

    fn handle(&self, stream: ServerStream) {
        let (target, offered, buffered) = (self.target, self.agreed, Arc::clone(&self.buffered));
        let outcomes = self.outcomes.clone();
        self.shard.spawn("server", async move {
            let ServerStream {
                mut recv, respond, ..
            } = stream;
            let mut reader = FrameReader::new(FrameLimit::Legacy);
            let init = loop {
                if let Some(Frame::Init(init)) = reader.next().unwrap() {
                    break ForwardInit::parse(&init).unwrap();
                }
                let Received::Data(data) = recv.recv().await else {
                    panic!("no init")
                };
                recv.release(data.len());
                reader.push(data);
            };
            let agreed = offered.intersect(init.capabilities);
            let upstream = TcpStream::connect(target).await.unwrap();
            harden(&upstream).unwrap();
            let kind = RpcKind::ForwardServer;
            let mut down = FrameEnd::accepted(kind, respond, recv, reader, agreed, &buffered);
            down.path_opened(&Opened::on(Capabilities::STREAM));
            let up = SocketEnd::new(Side::Upstream, Plug::Tcp(Arc::new(upstream)), &buffered);
            let leg = Leg::acceptor(Orientation::Forward, agreed.half_close());
            run(
                down,
                up,
                relay(leg, Leg::socket(), Origin::Gateway),
                outcomes,
            )
            .await;
        });
    }
}

fn relay(down: Leg, up: Leg, origin: Origin) -> Relay {
    Relay::new(
        down,
        up,
        StreamLimits::default(),
        origin,
        HopName::new("here"),
        Instant::now(),
    )
}

async fn run<D, U>(down: D, up: U, relay: Relay, report: mpsc::Sender<Outcome>)
where
    D: tidegate_bridge::End<Item = bytes::Bytes>,
    U: tidegate_bridge::End<Item = bytes::Bytes>,
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
