//! The bound of what is held for slow readers.

use tidegate_gateway::Config;
use tidegate_gateway::config::Size;
use tidegate_testkit::messages::RelayFrame;
use tidegate_testkit::raw_h2::{Client, grpc};
use tonic::Code;

use crate::common::{Answer, Forward, Running, Supervisor, config, init, is, path, works};

/// Lets a relay send more than its client takes, until the gateway takes no more either.
async fn stall(client: &Client, supervisor: &mut Supervisor) -> (Forward, crate::common::Relay) {
    let (mut forward, mut relay) = path(client, supervisor, "known").await;
    let Answer::Open(_, inbox) = &mut forward.answer else {
        panic!("it is open")
    };
    inbox.withhold_credit();
    for _ in 0..24 {
        relay
            .outbox
            .push(grpc::frame(&RelayFrame::data(vec![0; 65_536])))
            .unwrap();
    }
    (forward, relay)
}

#[tokio::test]
async fn past_the_limit_opens_are_refused_and_past_half_as_much_again_the_stalled_are_ended() {
    let config = Config {
        max_buffered: Size(1 << 20),
        ..config()
    };
    let gateway = Running::start(config).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    // A client with windows of the usual size has none left for others once one of its streams stalls.
    let other = Client::connect(gateway.addr).await.unwrap();
    let (mut healthy, mut healthy_relay) = path(&other, &mut supervisor, "known").await;
    let (first, _first_relay) = stall(&client, &mut supervisor).await;
    let (second, _second_relay) = stall(&client, &mut supervisor).await;
    // The one that has been stalled longest makes room.
    is(
        &first.outcome().await,
        Code::ResourceExhausted,
        "LIMIT_MEMORY",
    );
    works(&mut healthy, &mut healthy_relay).await;
    drop(second);
    gateway.stop().await;
}

#[tokio::test]
async fn an_open_past_the_limit_is_refused_without_waking_the_supervisor() {
    let config = Config {
        max_buffered: Size(700 << 10),
        ..config()
    };
    let gateway = Running::start(config).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (_stalled, _relay) = stall(&client, &mut supervisor).await;
    let refused =
        tidegate_testkit::wait::until_async(tidegate_testkit::wait::GENEROUS, async || {
            // A name that nobody knows is not asked for, whatever the gateway has room for.
            Forward::open(&client, init("nobody"))
                .await
                .outcome()
                .await
                .reason
                == "LIMIT_MEMORY"
        });
    refused.await.unwrap();
    gateway.stop().await;
}
