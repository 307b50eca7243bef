//! Homes that lead nowhere.

use std::time::Duration;

use tidegate_directory::{Claim, Directory, MemorySeat};
use tidegate_lifecycle::id::{InstanceId, SessionId};
use tonic::Code;

use super::{Pair, named};
use crate::common::{Forward, Supervisor, init, is, name, path, works};

/// Lets the directory believe, as long as the seat is held, in a session that gw0 never had. It
/// stands beside others of the process that the tests' supervisors say they are.
async fn ghost(pair: &Pair) -> MemorySeat {
    let claim = Claim {
        sandbox: name("known"),
        session: SessionId::new("ghost"),
        instance: InstanceId::new("raw"),
        homes: 2,
        replaces: None,
    };
    let owner = tidegate_gateway::Config {
        peer_url: Some(format!("http://{}", pair.owner.addr)),
        ..named("gw0")
    };
    let seat = pair.directory.seat(owner.replica());
    seat.claim(claim).await.unwrap();
    seat
}

#[tokio::test]
async fn a_home_without_an_address_is_told_at_once_with_the_setting() {
    let mute = |owner| tidegate_gateway::Config {
        peer_url: None,
        ..owner
    };
    let pair = Pair::with(mute, |asks| asks).await;
    let _supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let outcome = Forward::open(&client, init("known")).await.outcome().await;
    is(&outcome, Code::Unavailable, "PEER_UNCONFIGURED");
    assert!(
        outcome.message.contains("`peer_url`"),
        "{}",
        outcome.message
    );
    pair.rests().await;
}

#[tokio::test]
async fn a_stale_owner_is_not_the_last_word() {
    let pair = Pair::start().await;
    let _ghost = ghost(&pair).await;
    let client = pair.client().await;
    let mut forward = Forward::open(&client, init("known")).await;
    let mut supervisor = Supervisor::connect(pair.owner.addr, "known").await;
    let mut relay = supervisor.serve().await;
    works(&mut forward, &mut relay).await;
    drop((forward, relay));
    pair.rests().await;
}

#[tokio::test]
async fn a_stale_owner_without_a_successor_is_no_session() {
    let short = |asks| tidegate_gateway::Config {
        session_wait: Duration::from_millis(600),
        ..asks
    };
    let pair = Pair::with(|owner| owner, short).await;
    let _ghost = ghost(&pair).await;
    let client = pair.client().await;
    let outcome = Forward::open(&client, init("known")).await.outcome().await;
    is(&outcome, Code::Unavailable, "NO_SESSION");
    pair.rests().await;
}

#[tokio::test]
async fn a_session_of_its_own_comes_first() {
    let pair = Pair::start().await;
    let mut supervisor = Supervisor::connect(pair.asks.addr, "known").await;
    let _ghost = ghost(&pair).await;
    let client = pair.client().await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    drop((forward, relay));
    pair.rests().await;
}

#[tokio::test]
async fn an_unknown_sandbox_is_refused_at_once_wherever_it_is_asked_for() {
    let pair = Pair::start().await;
    let client = pair.client().await;
    let outcome = Forward::open(&client, init("nobody")).await.outcome().await;
    is(&outcome, Code::NotFound, "SANDBOX_NOT_FOUND");
    pair.rests().await;
}

#[tokio::test]
async fn limits_count_at_both() {
    let narrow = |config| tidegate_gateway::Config {
        max_streams: 1,
        ..config
    };
    let pair = Pair::with(narrow, |asks| asks).await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    let outcome = Forward::open(&client, init("known")).await.outcome().await;
    is(&outcome, Code::ResourceExhausted, "LIMIT_STREAMS");
    drop((forward, relay));
    pair.rests().await;
}
