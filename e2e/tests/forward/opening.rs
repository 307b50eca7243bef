//! From a wish to an open path, or to a clear no.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_e2e::measure::{Samples, in_one_try, ping_pong};
use tidegate_e2e::raw::{self, Client, Supervisor};
use tidegate_e2e::{Options, Topology, World, every_topology};
use tidegate_testkit::messages::{
    ForwardFrame, FromSupervisor, Hello, RelayFrame, RelayInit, SupervisorMessage, path,
};
use tidegate_testkit::record::Ended;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::{BlackHole, Target};
use tidegate_testkit::wait;
use tokio_util::sync::CancellationToken;
use tonic::Code;

use crate::MOMENT;

every_topology! {
    pf_09_a_target_that_speaks_first_is_heard,
    pf_10_every_call_is_answered_before_there_is_payload,
    pf_10_a_first_frame_may_come_late,
    pf_11_a_refused_target_resets_the_client_and_may_come_later,
    pf_24_a_target_that_never_answers_disturbs_nobody,
}

async fn pf_09_a_target_that_speaks_first_is_heard(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::banner(vec![b'!'; 64]).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    let banner = wait::within(MOMENT, "the banner", client.read(64)).await;
    assert_eq!(banner, [b'!'; 64]);
    assert_eq!(target.next().await.seen().bytes_read, 0);
    drop(client);
    world.settle().await;
}

async fn pf_10_every_call_is_answered_before_there_is_payload(topology: Topology) {
    let world = World::start(topology, Options::new().no_supervisor()).await;
    // Its answer is waited for, and there is no payload for it either.
    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let client = Client::connect(&world).await;
    let mut forward = client
        .forward("127.0.0.1:7".parse().unwrap(), &raw::STREAM)
        .await;
    let (_, mut relay) = supervisor.serve().await;
    wait::within(MOMENT, "the relay's headers", relay.opened())
        .await
        .unwrap();
    wait::within(MOMENT, "the forward's headers", forward.opened()).await;
    drop((client, forward, relay, supervisor));
    world.settle().await;
}

async fn pf_10_a_first_frame_may_come_late(topology: Topology) {
    const LATE: Duration = Duration::from_secs(1);
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let client = Client::connect(&world).await;
    let mut session = client.call(path::CONNECT_SUPERVISOR).await;
    let mut relay = client.call(path::RELAY_STREAM).await;
    let mut forward = client.call(path::FORWARD_TCP).await;
    tokio::time::sleep(LATE).await;

    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let mut other = client
        .forward("127.0.0.1:7".parse().unwrap(), &raw::STREAM)
        .await;
    let (_, mut served) = supervisor.serve().await;
    served.opened().await.unwrap();
    other.opened().await;

    let open = raw::init("127.0.0.1:7".parse().unwrap(), &raw::STREAM);
    forward
        .outbox
        .message(&ForwardFrame::init(open))
        .await
        .unwrap();
    let open = supervisor.asked().await;
    supervisor.succeed(&open).await;
    let claim = RelayInit {
        channel_id: open.channel_id,
        capabilities: raw::SESSION.map(str::to_owned).to_vec(),
        session_id: supervisor.accepted.session_id.clone(),
    };
    relay
        .outbox
        .message(&RelayFrame::init(claim))
        .await
        .unwrap();
    let (_, headers, _relay_inbox) = relay.response.headers().await.unwrap();
    assert!(!headers.contains_key("grpc-status"), "{headers:?}");
    let (_, headers, _forward_inbox) = forward.response.headers().await.unwrap();
    assert!(!headers.contains_key("grpc-status"), "{headers:?}");

    let hello = Hello {
        sandbox_id: "another".to_owned(),
        ..Hello::default()
    };
    let hello = SupervisorMessage::from(FromSupervisor::Hello(hello));
    session.outbox.message(&hello).await.unwrap();
    let (_, headers, _session_inbox) = session.response.headers().await.unwrap();
    assert!(!headers.contains_key("grpc-status"), "{headers:?}");
    drop((_relay_inbox, _forward_inbox, _session_inbox, other, served));
    drop((
        client,
        supervisor,
        forward.outbox,
        relay.outbox,
        session.outbox,
    ));
    world.settle().await;
}

async fn pf_11_a_refused_target_resets_the_client_and_may_come_later(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let address = Target::echo().unwrap().address();
    let forward = world.forward_to(&address.to_string()).await;
    let client = loop {
        // It may be reset before we can look.
        if let Ok(client) = Socket::connect(forward.address()).await {
            break client;
        }
    };
    let _ = client.write(b"0123456789").await; // may meet the reset already
    let seen = wait::within(MOMENT, "the refusal", client.read_to_end()).await;
    assert_eq!((seen.bytes_read, seen.read_end), (0, Some(Ended::Reset)));
    let closed = forward.closed_of(&client).await;
    assert_eq!(
        (&*closed.reason, &*closed.origin),
        ("TARGET_REFUSED", "target")
    );

    let target = Target::start_on(address, [tidegate_testkit::target::Step::Echo]).unwrap();
    let client = forward.connect().await;
    client.write(b"now").await.unwrap();
    assert_eq!(client.read(3).await, b"now");
    drop((client, target));
    world.settle().await;
}

async fn pf_24_a_target_that_never_answers_disturbs_nobody(topology: Topology) {
    const LIMIT: Duration = Duration::from_secs(1);
    let options = Options::new().supervisor("dial_timeout", "1s");
    let world = World::start(topology, options).await;
    let echo = Target::echo().unwrap();
    let forward = world.forward(&echo).await;
    let hole = BlackHole::open().unwrap();
    let mut echoes = Vec::new();
    for _ in 0..8 {
        echoes.push(forward.connect().await);
    }
    let client = Client::connect(&world).await;
    let measure = async || {
        let (dialled, stop) = (CancellationToken::new(), CancellationToken::new());
        let dial = async {
            let begun = Instant::now();
            let mut call = client.forward(hole.address(), &raw::STREAM).await;
            dialled.cancel();
            let outcome = call.outcome().await.unwrap();
            stop.cancel();
            let waited = begun.elapsed();
            assert!(waited >= LIMIT && waited < MOMENT, "{waited:?}");
            assert_eq!(
                (outcome.code, &*outcome.reason, &*outcome.origin),
                (Code::DeadlineExceeded, "DIAL_TIMEOUT", "supervisor")
            );
        };
        let echo = async |echo: &Socket| {
            let mut slowest = Samples::default();
            dialled.cancelled().await;
            while !stop.is_cancelled() {
                slowest.append(ping_pong(echo, b"ping", 1, Duration::from_millis(3)).await);
            }
            slowest
        };
        let ((), each) = tokio::join!(dial, join_all(echoes.iter().map(echo)));
        let mut all = Samples::default();
        each.into_iter().for_each(|samples| all.append(samples));
        assert!(all.count() >= 100, "they go on during the dial: {all:?}");
        all.percentile(99)
    };
    in_one_try(measure, |p99| *p99 < Duration::from_millis(50)).await;
    assert_eq!(world.sessions(), 1);
    drop((echoes, client));
    world.settle().await;
}
