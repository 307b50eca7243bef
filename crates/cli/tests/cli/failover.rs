//! A forward that knows two gateways, and outlives each.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tidegate_client::SandboxName;
use tidegate_gateway::config::GatewayName;
use tidegate_gateway::{Config, Gateway};
use tidegate_lifecycle::id::GatewayId;
use tidegate_supervisor::Supervisor;
use tidegate_supervisor::config::{GatewayUrl, Homes};
use tidegate_testkit::process::Process;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::{GENEROUS, until_async, within};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::house::{SANDBOX, address_in, event, tidegate};

/// A gateway in this process.
struct Running {
    address: SocketAddr,
    drain: CancellationToken,
    shutdown: CancellationToken,
    task: JoinSet<()>,
}

impl Running {
    async fn start(name: &str) -> Self {
        Self::at((Ipv4Addr::LOCALHOST, 0).into(), name).await
    }

    async fn at(listen: SocketAddr, name: &str) -> Self {
        let config = Config {
            listen: listen.into(),
            insecure_dev: true,
            gateway_id: GatewayName(GatewayId::new(name)),
            drain_announce: Duration::from_millis(200),
            ..Config::default()
        };
        let gateway = Gateway::bind(config).await.unwrap();
        let address = gateway.local_addr();
        let (drain, shutdown) = (CancellationToken::new(), CancellationToken::new());
        let mut task = JoinSet::new();
        task.spawn(gateway.run_and_drain(drain.clone(), shutdown.clone()));
        Self {
            address,
            drain,
            shutdown,
            task,
        }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    async fn door_is_closed(&self) {
        let closed = async || tokio::net::TcpStream::connect(self.address).await.is_err();
        until_async(GENEROUS, closed).await.unwrap();
    }

    async fn gone(&mut self) {
        let gone = within(GENEROUS, "a gateway's end", self.task.join_next()).await;
        gone.unwrap().unwrap();
    }
}

/// A supervisor in this process, with both gateways.
fn supervise(gateways: [&Running; 2]) -> JoinSet<()> {
    let sandbox = SandboxName::parse(SANDBOX).unwrap();
    let mut config = tidegate_supervisor::Config::new(gateways[0].url(), sandbox);
    config.gateway.push(GatewayUrl(gateways[1].url()));
    config.homes = Homes(2);
    let supervisor = Supervisor::new(config).unwrap();
    let mut task = JoinSet::new();
    task.spawn(async move { supervisor.run(CancellationToken::new()).await.unwrap() });
    task
}

async fn until_both_have_it(gateways: [&Running; 2]) {
    for gateway in gateways {
        let client = tidegate_client::Config::new([gateway.url()]);
        let client = tidegate_client::Client::new(&client).unwrap();
        let has = async || client.sessions(None).await.is_ok_and(|all| all.len() == 1);
        until_async(GENEROUS, has).await.unwrap();
    }
}

async fn echoes(socket: &Socket, bytes: &[u8]) {
    socket.write(bytes).await.unwrap();
    let echoed = within(GENEROUS, "an echo", socket.read(bytes.len())).await;
    assert_eq!(echoed, bytes);
}

#[tokio::test]
async fn a_forward_keeps_its_listener_while_one_gateway_leaves_and_another_dies() {
    let (mut leaving, mut dying) = (Running::start("gw0").await, Running::start("gw1").await);
    let _supervisor = supervise([&leaving, &dying]);
    until_both_have_it([&leaving, &dying]).await;
    let echo = Target::echo().unwrap();
    let home = tempfile::tempdir().unwrap();
    let spec = format!(":{}", echo.address().port());
    let (first, second) = (leaving.url(), dying.url());
    let args = [
        "port-forward",
        SANDBOX,
        &spec,
        "--output",
        "json",
        "--gateway",
        &first,
        "--gateway",
        &second,
    ];
    let forward = Process::spawn(tidegate(home.path(), &args)).unwrap();
    let local = address_in(&event(&forward, "listening").await["local"]);

    let long = Socket::connect(local).await.unwrap();
    echoes(&long, b"before").await;
    leaving.drain.cancel();
    leaving.door_is_closed().await;
    let new = Socket::connect(local).await.unwrap();
    echoes(&new, b"through the other gateway").await;
    echoes(&long, b"still through the one that leaves").await;
    long.shutdown_write().unwrap();
    assert!(long.read_to_end_soon().await.read_end.is_some());
    leaving.gone().await;

    // Another one has come back by the time that the second dies.
    let back = Running::at(leaving.address, "gw0").await;
    until_both_have_it([&back, &dying]).await;
    dying.shutdown.cancel();
    dying.gone().await;
    let last = Socket::connect(local).await.unwrap();
    echoes(&last, b"and back").await;
    assert!(forward.is_running(), "{forward}");
}
