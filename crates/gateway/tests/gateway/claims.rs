//! RelayStream: who may claim what, and when.

use std::time::Duration;

use tidegate_gateway::Config;
use tidegate_testkit::messages::RelayInit;
use tidegate_testkit::raw_h2::Client;
use tonic::Code;

use crate::common::{Forward, Running, Supervisor, config, init, is, works};

#[tokio::test]
async fn a_claim_of_an_unknown_foreign_or_used_channel_is_not_found() {
    let gateway = Running::start(config()).await;
    let mut ours = Supervisor::connect(gateway.addr, "known").await;
    let other = Supervisor::connect(gateway.addr, "other").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let unknown = other.claim(other.relay_init("0123456789abcdef")).await;
    is(
        &unknown.answer.outcome().await,
        Code::NotFound,
        "CHANNEL_UNKNOWN",
    );

    let mut forward = Forward::open(&client, init("known")).await;
    let open = ours.asked().await;
    let foreign = other.claim(other.relay_init(&open.channel_id)).await;
    is(
        &foreign.answer.outcome().await,
        Code::NotFound,
        "CHANNEL_UNKNOWN",
    );

    let mut relay = ours.claim(ours.relay_init(&open.channel_id)).await;
    relay.headers().await;
    let used = ours.claim(ours.relay_init(&open.channel_id)).await;
    is(
        &used.answer.outcome().await,
        Code::NotFound,
        "CHANNEL_UNKNOWN",
    );
    works(&mut forward, &mut relay).await;
    gateway.stop().await;
}

#[tokio::test]
async fn a_claim_names_its_session_and_one_that_is_over_is_stale() {
    let gateway = Running::start(config()).await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let forward = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    let good = supervisor.relay_init(&open.channel_id);

    let stale = RelayInit {
        session_id: "gone".to_owned(),
        ..good.clone()
    };
    let stale = supervisor.claim(stale).await.answer.outcome().await;
    is(&stale, Code::FailedPrecondition, "STALE_SESSION");
    let sentence = "holds no session gone: it is over, and relays belong to its successor, or it never \
                    was one of this gateway's";
    assert!(stale.message.contains(sentence), "{stale:?}");
    let unnamed = RelayInit {
        session_id: String::new(),
        ..good.clone()
    };
    let unnamed = supervisor.claim(unnamed).await.answer.outcome().await;
    is(&unnamed, Code::InvalidArgument, "INVALID_REQUEST");
    assert!(unnamed.message.contains("session_id"), "{unnamed:?}");
    let nameless = RelayInit {
        channel_id: String::new(),
        ..good.clone()
    };
    let nameless = supervisor.claim(nameless).await.answer.outcome().await;
    is(&nameless, Code::InvalidArgument, "INVALID_REQUEST");
    assert!(nameless.message.contains("channel_id"), "{nameless:?}");

    supervisor.claim(good).await.headers().await;
    drop(forward);
    gateway.stop().await;
}

#[tokio::test]
async fn ss_10_a_claim_after_the_limit_is_not_found() {
    let config = Config {
        relay_open_timeout: Duration::from_millis(300),
        ..config()
    };
    let gateway = Running::start(config).await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let forward = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    is(
        &forward.outcome().await,
        Code::DeadlineExceeded,
        "RELAY_OPEN_TIMEOUT",
    );
    let late = supervisor
        .claim(supervisor.relay_init(&open.channel_id))
        .await;
    is(
        &late.answer.outcome().await,
        Code::NotFound,
        "CHANNEL_UNKNOWN",
    );
    gateway.stop().await;
}
