//! One of the two is lost.

use tidegate_gateway::Config;
use tidegate_testkit::fault_proxy::{Ending, FaultProxy};
use tonic::Code;

use super::{Pair, closed, gateway, is_idle, named, reason};
use crate::common::{Forward, Supervisor, init, is, path, works};

/// Two gateways, and the line from the one that asks to the owner.
async fn with_line() -> (Pair, FaultProxy) {
    let nowhere = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    let line = FaultProxy::start(nowhere).unwrap();
    let url = format!("http://{}", line.address());
    let reached_by_line = |owner| Config {
        peer_url: Some(url),
        ..owner
    };
    let pair = Pair::with(reached_by_line, |asks| asks).await;
    line.redirect(pair.owner.addr);
    (pair, line)
}

#[tokio::test]
async fn ha_04_a_line_that_breaks_is_told_to_both_ends_each_in_its_own_words() {
    let (pair, line) = with_line().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    line.end_all(Ending::Reset);
    let outcome = forward.outcome().await;
    is(&outcome, Code::Unavailable, "OWNER_LOST");
    assert_eq!(outcome.origin, "peer");
    let outcome = relay.answer.outcome().await;
    is(&outcome, Code::Unavailable, "PEER_LOST");
    assert_eq!(outcome.origin, "peer");
    assert_eq!(reason(&closed(&mut supervisor).await), "PEER_LOST");
    for gateway in [&pair.owner, &pair.asks] {
        is_idle(gateway).await;
    }

    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    drop((forward, relay));
    pair.rests().await;
}

#[tokio::test]
async fn ha_04_a_stream_waits_while_the_owner_is_away_and_finds_the_next_home() {
    let (pair, line) = with_line().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    // The directory still tells of the owner, as it does of one that was killed.
    line.refuse(true);
    line.end_all(Ending::Reset);
    is(&forward.outcome().await, Code::Unavailable, "OWNER_LOST");
    let mut waiting = Forward::open(&client, init("known")).await;
    let mut supervisor = Supervisor::connect(pair.asks.addr, "known").await;
    let mut relay = supervisor.serve().await;
    works(&mut waiting, &mut relay).await;
    drop((waiting, relay));
    pair.rests().await;
}

#[tokio::test]
async fn a_stream_waits_for_a_home_that_comes_later() {
    let pair = Pair::start().await;
    let client = pair.client().await;
    let mut forward = Forward::open(&client, init("known")).await;
    let third = gateway(&pair.directory, named("gw2")).await;
    let mut supervisor = Supervisor::connect(third.addr, "known").await;
    let mut relay = supervisor.serve().await;
    works(&mut forward, &mut relay).await;
    drop((forward, relay));
    pair.rests().await;
    third.stop().await;
}
