//! Limits refuse before anyone is bothered, and give their places back.

use tidegate_gateway::Config;
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait;
use tonic::Code;

use crate::common::{Forward, Running, Supervisor, config, finishes, init, is, path, works};

#[tokio::test]
async fn ss_11_past_the_limit_of_pending_opens_the_supervisor_is_not_woken() {
    let gateway = Running::start(Config {
        max_pending_per_sandbox: 2,
        ..config()
    })
    .await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut first = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    let second = Forward::open(&client, init("known")).await;
    let other = supervisor.asked().await;
    let refused = Forward::open(&client, init("known")).await.outcome().await;
    is(&refused, Code::ResourceExhausted, "LIMIT_PENDING");

    let mut relay = supervisor
        .claim(supervisor.relay_init(&open.channel_id))
        .await;
    works(&mut first, &mut relay).await;
    // The place is free again, and this is the first the supervisor hears since.
    let third = Forward::open(&client, init("known")).await;
    let next = supervisor.asked().await;
    for (forward, channel) in [(second, other.channel_id), (third, next.channel_id)] {
        supervisor.answer(&channel, Some("no")).await;
        is(
            &forward.outcome().await,
            Code::Unavailable,
            "TARGET_UNREACHABLE",
        );
    }
    gateway.stop().await;
}

#[tokio::test]
async fn past_the_limit_of_streams_opens_are_refused_until_one_has_ended() {
    for config in [
        Config {
            max_streams: 1,
            ..config()
        },
        Config {
            max_streams_per_sandbox: 1,
            ..config()
        },
    ] {
        let gateway = Running::start(config).await;
        let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
        let client = Client::connect(gateway.addr).await.unwrap();
        let (forward, relay) = path(&client, &mut supervisor, "known").await;
        let refused = Forward::open(&client, init("known")).await.outcome().await;
        is(&refused, Code::ResourceExhausted, "LIMIT_STREAMS");
        finishes(forward, relay).await;
        path(&client, &mut supervisor, "known").await;
        gateway.stop().await;
    }
}

#[tokio::test]
async fn past_the_limit_of_sessions_a_hello_is_rejected_but_a_successor_is_not() {
    let gateway = Running::start(Config {
        max_sessions: 1,
        ..config()
    })
    .await;
    let _first = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let hello = tidegate_testkit::messages::FromSupervisor::Hello(crate::common::hello("other"));
    let call = crate::common::control(&client, vec![hello]).await;
    let outcome = crate::common::Answer::Waiting(call.response)
        .outcome()
        .await;
    is(&outcome, Code::ResourceExhausted, "LIMIT_SESSIONS");
    let mut second = Supervisor::connect(gateway.addr, "known").await;
    second.is_alive(gateway.addr).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_flood_of_silent_calls_is_refused_and_gives_its_places_back() {
    let gateway = Running::start(Config {
        max_streams: 3,
        ..config()
    })
    .await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..3 {
        silent.push(Forward::silent(&client).await);
    }
    client.ping().await.unwrap();
    let refused = Forward::silent(&client).await.outcome().await;
    is(&refused, Code::ResourceExhausted, "LIMIT_STREAMS");
    drop(silent);
    let free = wait::until_async(wait::GENEROUS, async || {
        let mut forward = Forward::open(&client, init("known")).await;
        let open = tokio::time::timeout(std::time::Duration::from_millis(100), supervisor.asked());
        match open.await {
            Ok(open) => {
                supervisor.answer(&open.channel_id, Some("no")).await;
                forward.outbox.reset(h2::Reason::CANCEL);
                true
            }
            Err(_) => false,
        }
    });
    free.await.unwrap();
    gateway.stop().await;
}
