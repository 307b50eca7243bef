//! What everyone is told when the gateway stops.

use std::time::Duration;

use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait::{self, GENEROUS};
use tonic::Code;

use crate::common::{Forward, Running, Supervisor, config, init, is, path};

#[tokio::test]
async fn a_gateway_that_stops_tells_everyone_why() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (open, relay) = path(&client, &mut supervisor, "known").await;
    let pending = Forward::open(&client, init("known")).await;
    supervisor.asked().await;
    let silent = Forward::silent(&client).await;
    client.ping().await.unwrap();
    let stopped = wait::within(Duration::from_secs(5), "everything to end", async {
        gateway.ask_to_stop();
        for forward in [open, pending, silent] {
            is(
                &forward.outcome().await,
                Code::Unavailable,
                "GATEWAY_DRAINING",
            );
        }
        is(
            &relay.answer.outcome().await,
            Code::Unavailable,
            "GATEWAY_DRAINING",
        );
        is(
            &supervisor.outcome().await,
            Code::Unavailable,
            "GATEWAY_DRAINING",
        );
    });
    stopped.await;
    drop(client);
    gateway.stop().await;
}

#[tokio::test]
async fn a_stopped_gateway_frees_its_port() {
    let gateway = Running::start(config()).await;
    let addr = gateway.addr;
    let _client = Client::connect(addr).await.unwrap();
    gateway.stop().await;
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}

/// Whoever embeds a gateway and drops it leaves nothing running, and its clients know it at once.
#[tokio::test]
async fn a_gateway_that_is_dropped_lets_go_of_every_connection() {
    let gateway = Running::start(config()).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let _open = path(&client, &mut supervisor, "known").await;
    drop(gateway);
    let closed = wait::within(GENEROUS, "the connection's end", client.closed());
    // How it ends is not promised.
    let _ = closed.await;
}
