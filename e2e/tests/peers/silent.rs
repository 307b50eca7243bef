//! Callers that hold what they have and say nothing.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_e2e::raw::{self, Client, Forward};
use tidegate_e2e::{Options, SANDBOX, Topology, World, every_topology};
use tidegate_testkit::messages::path;
use tidegate_testkit::raw_h2::StreamLost;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::{self, within};
use tonic::Code;

use crate::MOMENT;

every_topology! {
    sec_08_calls_without_a_first_frame_give_their_places_back,
    sec_09_a_client_that_takes_nothing_and_pings_is_ended,
}

async fn sec_08_calls_without_a_first_frame_give_their_places_back(topology: Topology) {
    const CALLS: usize = 500;
    let options = Options::new().gateway("init_timeout", "2s");
    let world = World::start(topology, options).await;
    let echo = Target::echo().unwrap();
    let forward = world.forward(&echo).await;
    let silent = Client::connect(&world).await;
    let mut calls = Vec::new();
    for path in [
        path::FORWARD_TCP,
        path::RELAY_STREAM,
        path::CONNECT_SUPERVISOR,
    ] {
        for _ in 0..CALLS {
            calls.push(Forward::from(silent.call(path).await));
        }
    }
    let local = forward.connect().await;
    local.write(b"legitimate").await.unwrap();
    assert_eq!(
        within(MOMENT, "an echo", local.read(10)).await,
        b"legitimate"
    );
    let ends = join_all(calls.iter_mut().map(|call| call.outcome())).await;
    for end in ends {
        let outcome = end.unwrap();
        let end = (outcome.code, &*outcome.reason);
        let late = end == (Code::DeadlineExceeded, "INIT_TIMEOUT");
        let too_many = outcome.code == Code::ResourceExhausted;
        assert!(late || too_many, "{outcome:?}");
    }
    drop((calls, silent, local));
    world.settle().await;
}

async fn sec_09_a_client_that_takes_nothing_and_pings_is_ended(topology: Topology) {
    const STREAMS: usize = 5;
    let options = Options::new().gateway("write_stall_timeout", "1s");
    let world = World::start(topology, options).await;
    let target = Target::endless().unwrap();
    let client = Client::connect(&world).await;
    let mut forwards = Vec::new();
    for _ in 0..STREAMS {
        let mut forward = client.forward(target.address(), &raw::STREAM).await;
        forward.opened().await.withhold_credit();
        forwards.push(forward);
    }
    let pinging = async {
        loop {
            client.raw().ping().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let freed = async {
        for _ in 0..STREAMS {
            target.next().await.until_write_fails(MOMENT).await;
        }
    };
    tokio::select! {
        () = pinging => {}
        () = freed => {}
    }
    let metrics = world.gateway().metrics();
    let stalled = metrics
        .others
        .iter()
        .filter(|(name, _)| name.contains("WRITE_STALLED"));
    assert_eq!(stalled.map(|(_, count)| count).sum::<f64>(), STREAMS as f64);
    for forward in &mut forwards {
        // The status waits behind data that is not taken, so it is a reset that comes.
        match forward.outcome().await {
            Ok(outcome) => assert_eq!(outcome.reason, "WRITE_STALLED"),
            Err(lost) => assert!(matches!(lost, StreamLost::Reset(_)), "{lost:?}"),
        }
    }
    client.raw().ping().await.unwrap();
    drop((forwards, client));
    world.settle().await;
}

/// A minute is six seconds to this supervisor.
#[tokio::test]
async fn sec_06_a_supervisor_with_an_expired_certificate_is_in_no_hurry() {
    let options = Options::new()
        .no_supervisor()
        .supervisor_proxy()
        .supervisor("time_scale", 10.0);
    let mut world = World::start(Topology::TLS, options).await;
    let expired = world
        .authority()
        .expired_client("spiffe://tidegate/sandbox/box")
        .unwrap();
    world.configure_supervisor("cert", expired.cert.to_str().unwrap());
    world.configure_supervisor("key", expired.key.to_str().unwrap());
    let supervisor = world.spawn_supervisor("expired", SANDBOX).await;
    wait::until_async(MOMENT, async || world.supervisor_proxy().accepted() > 0)
        .await
        .unwrap();
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let attempts = world.supervisor_proxy().accepted();
    assert!(
        attempts <= 5,
        "{attempts} attempts in {:?}",
        begun.elapsed()
    );
    let warnings = supervisor.logged(" WARN ");
    assert!(
        (1..=attempts).contains(&warnings),
        "{}",
        supervisor.process()
    );
    assert!(
        supervisor.logged("CREDENTIAL_EXPIRED") >= 1,
        "{}",
        supervisor.process()
    );
    supervisor.process().terminate();
    assert!(supervisor.process().exit(MOMENT).await.success());
    world.settle().await;
}
