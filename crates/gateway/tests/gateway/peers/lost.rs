//! One of the two is lost.

use tonic::Code;

use super::{Pair, gateway, is_idle, named};
use crate::common::{Forward, Supervisor, init, is, path, works};

#[tokio::test]
async fn ha_04_a_lost_owner_is_told_and_the_next_stream_finds_the_new_one() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    let Pair { owner, asks, .. } = pair;
    drop(owner);
    let outcome = forward.outcome().await;
    is(&outcome, Code::Unavailable, "OWNER_LOST");
    assert_eq!(outcome.origin, "peer");

    // The directory still tells of the dead: a stream waits until the supervisor is back.
    let mut waiting = Forward::open(&client, init("known")).await;
    let mut supervisor = Supervisor::connect(asks.addr, "known").await;
    let mut relay = supervisor.serve().await;
    relay.headers().await;
    works(&mut waiting, &mut relay).await;
    asks.stop().await;
}

#[tokio::test]
async fn a_lost_requester_is_told_to_the_supervisor_and_leaves_nothing() {
    let pair = Pair::start().await;
    let mut supervisor = pair.supervisor().await;
    let client = pair.client().await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    let Pair { owner, asks, .. } = pair;
    drop(asks);
    let outcome = relay.answer.outcome().await;
    is(&outcome, Code::Unavailable, "PEER_LOST");
    assert_eq!(outcome.origin, "peer");
    is_idle(&owner).await;
    owner.stop().await;
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
