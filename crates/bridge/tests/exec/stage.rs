//! A client, a gateway and a supervisor in one process, with real connections between them.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::HeaderMap;
use tidegate_bridge::{
    AwaitedExec, Cargo, End as TunnelEnd, ExecEnd, Handle, Opened, Outcome, PipeReceiver,
    PipeSender, RpcKind, Tunnel, exec_pipe,
};
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::cause::{End, Origin, Reason};
use tidegate_lifecycle::exec::{Command, Execution, Hop, Kind, TerminalSize};
use tidegate_lifecycle::id::{ChannelId, HopName, SandboxName, SessionId};
use tidegate_lifecycle::leg::Orientation;
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_lifecycle::relay::Side;
use tidegate_transport::{
    Buffered, Connection, Endpoint, Listener, Received, RecvHalf, Server, ServerStream, Settings,
    Shard, Shards, StreamHandler, listen,
};
use tidegate_wire::exec::{Dialect, Direction, ExecRequest, First, Item, ItemReader, Start};
use tidegate_wire::frame::{Frame, FrameLimit, FrameReader, RelayInit};
use tidegate_wire::metadata;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// What a caller asks.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) start: Start,
}

/// A command, on a terminal or on pipes.
pub(crate) fn command(tty: bool) -> Call {
    let command = Command {
        argv: vec!["filter".to_owned()],
        terminal: tty.then(TerminalSize::default),
        ..Command::default()
    };
    Call {
        start: Start::new(command),
    }
}

/// Everything between a caller and a runner.
pub(crate) struct Stage {
    /// What client and gateway agree on.
    agreed: Capabilities,
    /// Where the gateway listens.
    pub(crate) address: SocketAddr,
    client: Connection,
    supervisor: Connection,
    /// What everybody here holds.
    pub(crate) buffered: Arc<Buffered>,
    /// Calls that the gateway has no relay for yet.
    asked: mpsc::Receiver<()>,
    handles: mpsc::Receiver<Handle>,
    outcomes: mpsc::Receiver<Outcome>,
    report: mpsc::Sender<Outcome>,
    shards: Shards,
    _stop: tokio_util::sync::DropGuard,
}

type Claim = oneshot::Sender<(ExecEnd, Opened)>;

struct Gateway {
    agreed: Capabilities,
    buffered: Arc<Buffered>,
    shard: Shard,
    waiting: Mutex<Option<Claim>>,
    asks: mpsc::Sender<()>,
    handles: mpsc::Sender<Handle>,
    report: mpsc::Sender<Outcome>,
}

impl Stage {
    pub(crate) async fn new(agreed: Capabilities) -> Self {
        Self::with(agreed, Settings::default()).await
    }

    /// A stage whose gateway serves with `settings`.
    pub(crate) async fn with(agreed: Capabilities, settings: Settings) -> Self {
        let shards = Shards::new(1).unwrap();
        let buffered = Buffered::new();
        let (asks, asked) = mpsc::channel(16);
        let (handle, handles) = mpsc::channel(16);
        let (report, outcomes) = mpsc::channel(16);
        let gateway = Arc::new(Gateway {
            agreed,
            buffered: Arc::clone(&buffered),
            shard: shards.get(0),
            waiting: Mutex::new(None),
            asks,
            handles: handle,
            report: report.clone(),
        });
        let stop = CancellationToken::new();
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}");
        let server = Server {
            settings,
            ..Server::default()
        };
        serve(&shards.get(0), server, listener, gateway, &stop);
        let connect = || async { Endpoint::parse(&url).unwrap().connect().await.unwrap() };
        Self {
            agreed,
            address,
            client: connect().await,
            supervisor: connect().await,
            buffered,
            asked,
            handles,
            outcomes,
            report,
            shards,
            _stop: stop.drop_guard(),
        }
    }

    /// Calls, as a client does.
    pub(crate) fn call(&mut self, call: Call) -> (PipeSender, PipeReceiver) {
        let gone = End::new(Origin::Client, Reason::ClientCancelled, "dropped");
        let (local, sender, receiver) = exec_pipe(gone, &self.buffered);
        let (send, head) = self
            .client
            .open(metadata::EXEC_SANDBOX_INTERACTIVE, HeaderMap::new())
            .unwrap();
        let tty = call.start.command.terminal.is_some();
        let mut start = call.start;
        start.capabilities = self.agreed;
        let sandbox = SandboxName::parse("local").unwrap();
        let first = ExecRequest { sandbox, start }.encode_first();
        let kind = RpcKind::ExecClient;
        let remote = ExecEnd::opened(kind, send, head, first, None, &self.buffered);
        let process = Hop::opener(Orientation::Forward, None);
        let mut execution = execution(Hop::local(), process, Origin::Client);
        execution.recv(Side::Downstream, Kind::Start { tty }, Instant::now());
        let report = self.report.clone();
        self.shards.get(0).spawn("client", async move {
            let handle = Handle::new(Instant::now());
            run(local, remote, execution, handle, report).await;
        });
        (sender, receiver)
    }

    /// Opens the relay that the gateway has asked for, as a supervisor does.
    pub(crate) async fn runner(&mut self) -> (PipeSender, PipeReceiver) {
        bounded(self.asked.recv()).await.unwrap();
        let gone = End::new(Origin::Supervisor, Reason::InternalError, "dropped");
        let (process, sender, receiver) = exec_pipe(gone, &self.buffered);
        let (send, head) = self
            .supervisor
            .open(metadata::RELAY_STREAM, HeaderMap::new())
            .unwrap();
        let init = RelayInit {
            channel: ChannelId::new("channel"),
            session: Some(SessionId::new("session")),
            capabilities: Capabilities::SESSION,
        };
        let agreed = Some(Capabilities::SESSION);
        let kind = RpcKind::RelayClient { liveness: true };
        let remote = ExecEnd::opened(kind, send, head, init.encode(), agreed, &self.buffered);
        let caller = Hop::opener(Orientation::Backward, agreed);
        let execution = execution(caller, Hop::local(), Origin::Supervisor);
        let report = self.report.clone();
        self.shards.get(0).spawn("supervisor", async move {
            let handle = Handle::new(Instant::now());
            run(remote, process, execution, handle, report).await;
        });
        (sender, receiver)
    }

    pub(crate) async fn outcome(&mut self) -> Outcome {
        bounded(self.outcomes.recv()).await.unwrap()
    }

    /// The gateway's tunnel, from outside.
    pub(crate) async fn gateway_handle(&mut self) -> Handle {
        bounded(self.handles.recv()).await.unwrap()
    }

    /// Waits until the client's and the supervisor's connection carry nothing any more.
    pub(crate) async fn is_empty(&self) {
        let gone = async {
            while self.client.active_streams() + self.supervisor.active_streams() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let soon = tokio::time::timeout(Duration::from_secs(2), gone).await;
        assert!(soon.is_ok(), "streams are left after 2 s");
    }
}

impl StreamHandler for Gateway {
    fn wants(&self, path: &str) -> bool {
        [
            metadata::EXEC_SANDBOX,
            metadata::EXEC_SANDBOX_INTERACTIVE,
            metadata::RELAY_STREAM,
        ]
        .contains(&path)
    }

    fn handle(&self, stream: ServerStream) {
        let buffered = Arc::clone(&self.buffered);
        if stream.head.uri.path() == metadata::RELAY_STREAM {
            let claim = self.waiting.lock().unwrap().take().unwrap();
            self.shard.spawn("relay", async move {
                let _ = claim.send(relay(stream, &buffered).await);
            });
            return;
        }
        let (claim, claimed) = oneshot::channel();
        *self.waiting.lock().unwrap() = Some(claim);
        let handle = Handle::new(Instant::now());
        let (agreed, report, asks) = (self.agreed, self.report.clone(), self.asks.clone());
        let handles = self.handles.clone();
        self.shard.spawn("gateway", async move {
            handles.send(handle.clone()).await.unwrap();
            let (caller, execution) = accept(stream, agreed, &buffered).await;
            asks.send(()).await.unwrap();
            let opening = async move { Ok(claimed.await.unwrap()) };
            let process = AwaitedExec::new(Box::pin(opening), &buffered);
            run(caller, process, execution, handle, report).await;
        });
    }
}

/// A client's call, whose start was read.
async fn accept(
    stream: ServerStream,
    agreed: Capabilities,
    buffered: &Arc<Buffered>,
) -> (ExecEnd, Execution) {
    let ServerStream {
        head,
        mut recv,
        respond,
        ..
    } = stream;
    let once = head.uri.path() == metadata::EXEC_SANDBOX;
    let mut reader = ItemReader::new(Dialect::Client, Direction::Input, FrameLimit::Legacy);
    let start = loop {
        let first = if once {
            reader.request().unwrap().map(First::Start)
        } else {
            reader.first().unwrap()
        };
        match first {
            Some(First::Start(start)) => break ExecRequest::parse(&start).unwrap().start,
            Some(First::Other) => panic!("no start"),
            None => reader.push(data(&mut recv).await),
        }
    };
    let agreed = agreed.intersect(start.capabilities);
    let kind = RpcKind::ExecServer;
    let fin = once.then_some(Item::StdinFin);
    let said = Item::Start(Box::new(start)).pieces().chain(fin);
    let reader = ExecEnd::reader(kind, said, reader);
    let end = ExecEnd::accepted(kind, respond, recv, reader, agreed, buffered);
    let caller = Hop::acceptor(Orientation::Forward, agreed);
    (end, execution(caller, Hop::awaited(), Origin::Gateway))
}

/// A supervisor's relay, whose init was read.
async fn relay(stream: ServerStream, buffered: &Arc<Buffered>) -> (ExecEnd, Opened) {
    let ServerStream {
        mut recv, respond, ..
    } = stream;
    let mut frames = FrameReader::new(FrameLimit::Strict);
    let init = loop {
        if let Some(Frame::Init(init)) = frames.next().unwrap() {
            break RelayInit::parse(&init).unwrap();
        }
        frames.push(data(&mut recv).await);
    };
    let agreed = init.capabilities;
    let kind = RpcKind::RelayServer { liveness: true };
    let reader = ItemReader::behind(frames, Direction::Event, FrameLimit::of(agreed));
    let reader = ExecEnd::reader(kind, [], reader);
    let mut end = ExecEnd::accepted(kind, respond, recv, reader, agreed, buffered);
    let opened = Opened::on(agreed);
    end.path_opened(&opened);
    (end, opened)
}

async fn data(recv: &mut RecvHalf) -> bytes::Bytes {
    let Received::Data(data) = recv.recv().await else {
        panic!("no first message")
    };
    recv.release(data.len());
    data
}

fn serve(
    shard: &Shard,
    server: Server,
    listener: Listener,
    gateway: Arc<Gateway>,
    stop: &CancellationToken,
) {
    let (shard, stop, server) = (shard.clone(), stop.clone(), Arc::new(server));
    let acceptor = shard.clone();
    acceptor.spawn("accept", async move {
        let mut served = tokio::task::JoinSet::new();
        loop {
            let (io, _) = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.cancelled() => break,
            };
            let (handler, shard, stop) = (Arc::clone(&gateway), shard.clone(), stop.clone());
            let server = Arc::clone(&server);
            served.spawn(async move {
                let unary = tonic::service::Routes::default();
                server.serve(io, shard, handler, unary, stop).await;
            });
        }
    });
}

fn execution(caller: Hop, process: Hop, origin: Origin) -> Execution {
    let (hop, now) = (HopName::new("here"), Instant::now());
    Execution::new(caller, process, StreamLimits::default(), origin, hop, now)
}

async fn run<I, D, U>(
    down: D,
    up: U,
    execution: Execution,
    handle: Handle,
    report: mpsc::Sender<Outcome>,
) where
    I: Cargo,
    D: TunnelEnd<Item = I>,
    U: TunnelEnd<Item = I>,
    Execution: tidegate_bridge::Machine<Item = I>,
{
    let mut tunnel = Tunnel::new(down, up, execution, handle, Instant::now());
    let outcome = tunnel.run().await;
    // A test that has seen enough has dropped the other half.
    let _ = report.send(outcome).await;
    tunnel.linger().await;
}

pub(crate) async fn bounded<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future)
        .await
        .expect("within 30 s")
}
