//! Opens that meet no supervisor, one that does not answer, or one that has enough to do.

use std::time::{Duration, Instant};

use tidegate_e2e::raw::{self, Client, Supervisor};
use tidegate_e2e::world::open;
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::messages::{FromGateway, RelayInit, RelayOpen};
use tidegate_testkit::target::{BlackHole, Target};
use tidegate_testkit::wait::{GENEROUS, within};
use tonic::Code;

use crate::MOMENT;

every_topology! {
    ss_09_opens_end_with_the_session_they_wait_for,
    ss_09_opens_end_with_the_supervisor_that_dials,
    ss_10_a_supervisor_that_does_not_answer_is_given_up,
    a_relay_is_claimed_by_the_session_that_was_asked_and_by_no_other,
    ss_11_a_limit_is_checked_before_the_supervisor_is_woken,
    ss_13_an_open_waits_for_a_supervisor_that_is_starting,
    ss_13_an_open_does_not_wait_for_ever,
}

async fn ss_09_opens_end_with_the_session_they_wait_for(topology: Topology) {
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let client = Client::connect(&world).await;
    let mut forward = client
        .forward("127.0.0.1:7".parse().unwrap(), &raw::STREAM)
        .await;
    supervisor.asked().await;
    drop(supervisor);
    let begun = Instant::now();
    let outcome = forward.outcome().await.unwrap();
    assert!(begun.elapsed() < MOMENT / 2, "{:?}", begun.elapsed());
    assert_eq!(
        (outcome.code, &*outcome.reason),
        (Code::Unavailable, "SUPERVISOR_LOST")
    );
    world
        .gateway()
        .until_metric("tidegate_pending_relays", 0.0, MOMENT)
        .await;
    drop((client, forward));
    world.settle().await;
}

async fn ss_09_opens_end_with_the_supervisor_that_dials(topology: Topology) {
    let mut world = World::start(topology, Options::new()).await;
    let hole = BlackHole::open().unwrap();
    let client = Client::connect(&world).await;
    let mut forward = client.forward(hole.address(), &raw::STREAM).await;
    world
        .supervisor()
        .until_metric("tidegate_streams", 1.0, MOMENT)
        .await;
    world.kill_supervisor().await;
    let begun = Instant::now();
    let outcome = forward.outcome().await.unwrap();
    assert!(begun.elapsed() < MOMENT / 2, "{:?}", begun.elapsed());
    assert_eq!(
        (outcome.code, &*outcome.reason),
        (Code::Unavailable, "SUPERVISOR_LOST")
    );
    drop((client, forward));
    world.start_supervisor().await;
    world.rebase().await;
    world.settle().await;
}

async fn ss_10_a_supervisor_that_does_not_answer_is_given_up(topology: Topology) {
    const LIMIT: Duration = Duration::from_secs(1);
    let options = Options::new()
        .no_supervisor()
        .gateway("relay_open_timeout", "1s");
    let world = World::start(topology, options).await;
    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let client = Client::connect(&world).await;
    let begun = Instant::now();
    let mut forward = client
        .forward("127.0.0.1:7".parse().unwrap(), &raw::STREAM)
        .await;
    let asked = supervisor.asked().await;
    let outcome = forward.outcome().await.unwrap();
    let waited = begun.elapsed();
    assert!(waited >= LIMIT && waited < MOMENT, "{waited:?}");
    assert_eq!(
        (outcome.code, &*outcome.reason),
        (Code::DeadlineExceeded, "RELAY_OPEN_TIMEOUT")
    );
    let refused = supervisor.claim(&asked).await.opened().await.unwrap_err();
    assert_eq!(
        (refused.code, &*refused.reason),
        (Code::NotFound, "CHANNEL_UNKNOWN")
    );
    drop((client, forward, supervisor));
    world.settle().await;
}

async fn a_relay_is_claimed_by_the_session_that_was_asked_and_by_no_other(topology: Topology) {
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let thief = Supervisor::connect_for(&world, "another", &raw::SESSION).await;
    let client = Client::connect(&world).await;
    let mut forward = client
        .forward("127.0.0.1:7".parse().unwrap(), &raw::STREAM)
        .await;
    let asked = supervisor.asked().await;
    supervisor.succeed(&asked).await;
    let named = RelayInit {
        channel_id: asked.channel_id.clone(),
        capabilities: raw::SESSION.map(str::to_owned).to_vec(),
        session_id: thief.accepted.session_id.clone(),
    };
    let nameless = RelayInit {
        channel_id: asked.channel_id.clone(),
        ..RelayInit::default()
    };
    for claim in [named, nameless] {
        let refused = thief.claim_as(claim).await.opened().await.unwrap_err();
        assert_eq!(
            (refused.code, &*refused.reason),
            (Code::NotFound, "CHANNEL_UNKNOWN")
        );
    }
    let mut relay = supervisor.claim(&asked).await;
    forward.opened().await;
    relay.data("ours").await;
    assert_eq!(forward.read(4).await, b"ours");
    drop((client, forward, relay, supervisor, thief));
    world.settle().await;
}

async fn ss_11_a_limit_is_checked_before_the_supervisor_is_woken(topology: Topology) {
    let options = Options::new()
        .no_supervisor()
        .gateway("max_streams_per_sandbox", 2);
    let world = World::start(topology, options).await;
    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let client = Client::connect(&world).await;
    let wanted = |port: u16| ([127, 0, 0, 1], port).into();
    let mut live = Vec::new();
    for port in [1, 2] {
        let mut forward = client.forward(wanted(port), &raw::STREAM).await;
        let (open, relay) = supervisor.serve().await;
        assert_eq!(port_of(&open), port);
        forward.opened().await;
        live.push((forward, relay));
    }
    let mut third = client.forward(wanted(3), &raw::STREAM).await;
    let outcome = third.outcome().await.unwrap();
    assert_eq!(
        (outcome.code, &*outcome.reason),
        (Code::ResourceExhausted, "LIMIT_STREAMS")
    );
    for (forward, relay) in &mut live {
        relay.data("works").await;
        assert_eq!(forward.read(5).await, b"works");
    }
    let (mut first, _relay) = live.remove(0);
    first.reset(h2::Reason::CANCEL);
    world
        .gateway()
        .until_metric("tidegate_streams", 1.0, MOMENT)
        .await;
    let mut fourth = client.forward(wanted(4), &raw::STREAM).await;
    // Nothing was asked for the third.
    let (open, _relay) = loop {
        match supervisor.hear().await {
            Some(FromGateway::RelayOpen(open)) => {
                supervisor.succeed(&open).await;
                let relay = supervisor.claim(&open).await;
                break (open, relay);
            }
            Some(_) => {} // the farewell of the first
            None => panic!("the session has ended"),
        }
    };
    assert_eq!(port_of(&open), 4);
    fourth.opened().await;
    drop((client, live, first, fourth, third, supervisor));
    world.settle().await;
}

fn port_of(open: &RelayOpen) -> u16 {
    open.tcp.as_ref().unwrap().port.try_into().unwrap()
}

async fn ss_13_an_open_waits_for_a_supervisor_that_is_starting(topology: Topology) {
    const LATE: Duration = Duration::from_secs(1);
    let mut world = World::start(topology, Options::new().no_supervisor()).await;
    let target = Target::echo().unwrap();
    let client = world.client();
    let begun = Instant::now();
    let opening = open(&client, target.address());
    let starting = async {
        tokio::time::sleep(LATE).await;
        world.start_supervisor().await;
    };
    let (stream, ()) = tokio::join!(within(GENEROUS, "the open", opening), starting);
    let waited = begun.elapsed();
    assert!(waited >= LATE && waited < MOMENT, "{waited:?}");
    stream.unwrap().reset();
    drop(client);
    world.rebase().await;
    world.settle().await;
}

async fn ss_13_an_open_does_not_wait_for_ever(topology: Topology) {
    const WAIT: Duration = Duration::from_secs(1);
    let options = Options::new().no_supervisor().gateway("session_wait", "1s");
    let world = World::start(topology, options).await;
    let client = Client::connect(&world).await;
    let begun = Instant::now();
    let mut forward = client
        .forward("127.0.0.1:7".parse().unwrap(), &raw::STREAM)
        .await;
    let outcome = forward.outcome().await.unwrap();
    let waited = begun.elapsed();
    assert!(waited >= WAIT && waited < MOMENT, "{waited:?}");
    assert_eq!(
        (outcome.code, &*outcome.reason),
        (Code::Unavailable, "NO_SESSION")
    );
    drop((client, forward));
    world.settle().await;
}
