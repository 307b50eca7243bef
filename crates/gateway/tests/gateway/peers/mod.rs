//! Two gateways that share a directory: the supervisor is at home at one, the client talks to the other.

mod asked;
mod exec;
mod forward;
mod lost;
mod tls;
mod wanting;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;

use tidegate_directory::{Directory, Memory, MemorySettings};
use tidegate_gateway::Config;
use tidegate_gateway::config::GatewayName;
use tidegate_lifecycle::id::GatewayId;
use tidegate_testkit::messages::{FromGateway, RelayClose};
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait::{self, GENEROUS};

use crate::admin::metrics;
use crate::common::{Running, Supervisor, config};

/// The two.
struct Pair {
    /// Has the session.
    owner: Running,
    /// Has the client.
    asks: Running,
    directory: Memory,
}

impl Pair {
    async fn start() -> Self {
        Self::with(|owner| owner, |asks| asks).await
    }

    async fn with(
        owner: impl FnOnce(Config) -> Config,
        asks: impl FnOnce(Config) -> Config,
    ) -> Self {
        let directory = directory().await;
        Self {
            owner: gateway(&directory, owner(named("gw0"))).await,
            asks: gateway(&directory, asks(named("gw1"))).await,
            directory,
        }
    }

    async fn client(&self) -> Client {
        Client::connect(self.asks.addr).await.unwrap()
    }

    async fn supervisor(&self) -> Supervisor {
        Supervisor::connect(self.owner.addr, "known").await
    }

    /// Waits until nothing is open at either of them, and stops both.
    async fn rests(self) {
        for gateway in [&self.owner, &self.asks] {
            is_idle(gateway).await;
        }
        self.asks.stop().await;
        self.owner.stop().await;
    }
}

async fn directory() -> Memory {
    let directory = Memory::new(MemorySettings {
        grace: std::time::Duration::ZERO,
        ..MemorySettings::default()
    });
    let seat = directory.seat(named("gw9").replica());
    seat.declare(&crate::common::name("known")).await.unwrap();
    directory
}

/// A gateway with a place that the other one can know before it listens.
fn named(id: &str) -> Config {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let addr: SocketAddr = free.local_addr().unwrap();
    Config {
        gateway_id: GatewayName(GatewayId::new(id)),
        listen: addr.into(),
        peer_url: Some(format!("http://{addr}")),
        ..config()
    }
}

async fn gateway(directory: &Memory, config: Config) -> Running {
    let seat = directory.seat(config.replica());
    Running::start_with(config, Arc::new(seat)).await
}

async fn is_idle(gateway: &Running) {
    let idle = async || {
        let now = metrics(gateway).await;
        now.sum("tidegate_streams") == 0.0
            && now.gauges["tidegate_pending_relays"] == 0.0
            && now.gauges["tidegate_peer_streams"] == 0.0
    };
    wait::until_async(GENEROUS, idle).await.unwrap();
}

/// What a supervisor is told of a relay's end.
async fn closed(supervisor: &mut Supervisor) -> RelayClose {
    match supervisor.next().await {
        FromGateway::RelayClose(close) => close,
        other => panic!("expected the end of a relay, got {other:?}"),
    }
}

fn reason(close: &RelayClose) -> &str {
    close.cause.as_ref().unwrap().reason.as_str()
}
