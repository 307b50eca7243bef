//! Peers of another age on the session.

use std::time::Duration;

use http::HeaderMap;
use prost::Message;
use tidegate_e2e::options::NO_HEARTBEATS;
use tidegate_e2e::raw::{self, Client, Supervisor};
use tidegate_e2e::{Options, SANDBOX, Topology, World, every_topology};
use tidegate_testkit::legacy;
use tidegate_testkit::messages::{
    FromGateway, FromSupervisor, GatewayMessage, Hello, SupervisorMessage, path,
};
use tidegate_testkit::outcome::Outcome;
use tidegate_testkit::raw_h2::{self, Received};
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::within;
use tonic::Code;

use crate::{MOMENT, NONE_YET, opens};

every_topology! {
    ss_21_another_version_is_refused_and_both_are_named,
    ss_21_what_a_newer_supervisor_says_is_ignored,
}

async fn ss_21_another_version_is_refused_and_both_are_named(topology: Topology) {
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let client = Client::connect(&world).await;
    let mut call = client.call(path::CONNECT_SUPERVISOR).await;
    let hello = Hello {
        sandbox_id: SANDBOX.to_owned(),
        protocol_version: 99,
        ..Hello::default()
    };
    let hello = SupervisorMessage::from(FromSupervisor::Hello(hello));
    call.outbox.message(&hello).await.unwrap();
    let (_, _, mut inbox) = call.response.headers().await.unwrap();
    let (said, end) = within(MOMENT, "the refusal", inbox.rest()).await;
    let said = GatewayMessage::decode(said[0].clone()).unwrap().payload;
    let Some(FromGateway::SessionRejected(rejected)) = said else {
        panic!("not rejected: {said:?}");
    };
    let Received::Trailers(trailers) = end else {
        panic!("no status: {end:?}");
    };
    let outcome = Outcome::from_headers(&trailers).unwrap();
    assert_eq!(
        (outcome.code, &*outcome.reason),
        (Code::FailedPrecondition, "VERSION_UNSUPPORTED")
    );
    for text in [&outcome.message, &rejected.reason] {
        assert!(text.contains("99") && text.contains('1'), "{text}");
    }
    drop((client, inbox, call.outbox));
    world.settle().await;
}

async fn ss_21_what_a_newer_supervisor_says_is_ignored(topology: Topology) {
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    // Fields 999 (a number) and 1000 (bytes), and nothing at all.
    for message in [
        &[0xb8, 0x3e, 0x01][..],
        &[0xc2, 0x3e, 0x02, b'h', b'i'],
        &[],
    ] {
        supervisor.say_bytes(message).await;
    }
    let client = Client::connect(&world).await;
    let mut forward = client
        .forward("127.0.0.1:7".parse().unwrap(), &raw::STREAM)
        .await;
    let (_, mut relay) = supervisor.serve().await;
    forward.opened().await;
    relay.data("works").await;
    assert_eq!(forward.read(5).await, b"works");
    drop((client, forward, relay, supervisor));
    world.settle().await;
}

/// The test is a gateway that speaks another version: a minute is six seconds to the supervisor.
#[tokio::test]
async fn ss_21_a_supervisor_that_is_refused_is_in_no_hurry() {
    let gateway = raw_h2::Server::bind().await.unwrap();
    let options = Options::new()
        .no_supervisor()
        .supervisor(
            "gateway",
            vec![format!("http://{}", gateway.address().unwrap())],
        )
        .supervisor("time_scale", 10.0);
    let world = World::start(Topology::PLAINTEXT, options).await;
    let supervisor = world.spawn_supervisor("refused", SANDBOX).await;
    let refusing = async {
        let mut attempts = 0;
        loop {
            let mut connection = gateway.accept().await.unwrap();
            let call = connection.call().await;
            attempts += 1;
            let (mut outbox, mut inbox) = call.accept(HeaderMap::new()).unwrap();
            outbox.status(Code::FailedPrecondition).unwrap();
            inbox.rest().await;
            if attempts == 2 {
                return;
            }
        }
    };
    let begun = std::time::Instant::now();
    refusing.await;
    let between = begun.elapsed();
    assert!(between >= Duration::from_secs(3), "{between:?}");
    assert!(supervisor.logged(NONE_YET) >= 1);
    supervisor.process().terminate();
    assert!(supervisor.process().exit(MOMENT).await.success());
    world.settle().await;
}

#[tokio::test]
async fn ss_19_a_supervisor_without_heartbeats_is_left_alone() {
    const INTERVAL: Duration = Duration::from_millis(300);
    let options = Options::new()
        .no_supervisor()
        .gateway("heartbeat_interval", "300ms");
    let world = World::start(Topology::PLAINTEXT, options).await;
    let options = legacy::SupervisorOptions {
        heartbeats: legacy::Heartbeats::Never,
        ..legacy::SupervisorOptions::new(world.gateway_address(), SANDBOX)
    };
    let supervisor = legacy::Supervisor::start(options).unwrap();
    supervisor.accepted().await;
    tokio::time::sleep(10 * INTERVAL).await;
    let target = Target::echo().unwrap();
    let client = world.client();
    opens(&client, target.address()).await;
    let ended = |event: &legacy::Event| matches!(event, legacy::Event::SessionEnded(_));
    assert!(
        !supervisor.events().iter().any(ended),
        "{:?}",
        supervisor.events()
    );
    assert_eq!(world.gateway().logged(NO_HEARTBEATS), 1);
    drop((client, supervisor));
    world.settle().await;
}

#[tokio::test]
async fn ss_19_a_gateway_without_heartbeats_is_left_alone() {
    const INTERVAL: Duration = Duration::from_millis(300);
    let gateway = legacy::Gateway::start(legacy::GatewayOptions {
        dialect: legacy::Dialect::New,
        heartbeat: INTERVAL,
        sends_heartbeats: false,
    });
    let gateway = gateway.unwrap();
    let options = Options::new()
        .no_supervisor()
        .supervisor("gateway", vec![format!("http://{}", gateway.address())]);
    let world = World::start(Topology::PLAINTEXT, options).await;
    let supervisor = world.spawn_supervisor("patient", SANDBOX).await;
    let session = gateway.session().await;
    tokio::time::sleep(10 * INTERVAL).await;
    let target = Target::echo().unwrap();
    let mut relay = session
        .open("127.0.0.1", target.address().port())
        .await
        .unwrap();
    assert!(relay.send("word").await);
    assert_eq!(relay.read(4).await, b"word");
    assert_eq!(supervisor.logged(" WARN "), 1, "{}", supervisor.process());
    assert_eq!(supervisor.logged(NO_HEARTBEATS), 1);
    relay.finish();
    relay.read_to_end().await;
    supervisor.process().terminate();
    assert!(supervisor.process().exit(MOMENT).await.success());
    world.settle().await;
}
