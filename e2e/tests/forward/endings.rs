//! Abrupt ends: never mistaken for clean ones, never kept from whom they concern, never spread.

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::HeaderMap;
use tidegate_e2e::forward::{Access, Via};
use tidegate_e2e::raw::{self, Client, Supervisor};
use tidegate_e2e::{Forward, Options, Topology, World, every_topology};
use tidegate_testkit::content::Content;
use tidegate_testkit::fault_proxy::Ending;
use tidegate_testkit::messages::{ForwardFrame, path};
use tidegate_testkit::raw_h2::{self, Received};
use tidegate_testkit::record::Ended;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait;
use tokio::net::TcpListener;
use tonic::Code;

use crate::MOMENT;

every_topology! {
    pf_12_a_reset_connection_takes_no_other_with_it,
    pf_13_target_reset_reaches_the_client,
    pf_14_client_reset_reaches_the_target,
    pf_14_a_client_that_dies_with_unread_data_is_a_reset,
    pf_14_a_killed_forward_is_a_reset,
    pf_16_a_reset_of_the_relay_is_no_end,
    pf_16_a_reset_of_the_forward_is_no_end,
    pf_18_the_target_learns_that_the_client_has_gone,
    pf_22_a_client_learns_that_the_target_has_gone,
    pf_23_a_client_that_dies_after_its_half_close_is_noticed,
    pf_23_a_connection_reset_after_a_half_close_is_noticed,
}

const MIB: u64 = 1 << 20;

async fn pf_12_a_reset_connection_takes_no_other_with_it(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let target = listener.local_addr().unwrap();
    let forward = world.forward_to(&target.to_string()).await;
    let accept = async || Socket::new(listener.accept().await.unwrap().0);

    let (a, resetter) = tokio::join!(forward.connect(), accept());
    let (b, echo) = tokio::join!(forward.connect(), accept());
    resetter.write(&[1; 1000]).await.unwrap();
    assert_eq!(a.read(1000).await.len(), 1000);

    let content = Content::new(16 * MIB, 12);
    let upload = async {
        b.write_content(content).await.unwrap();
        b.shutdown_write().unwrap();
    };
    let interrupt = async {
        wait::until_async(MOMENT, async || b.seen().bytes_read > MIB)
            .await
            .unwrap();
        resetter.reset();
        assert_eq!(a.read_to_end_soon().await.read_end, Some(Ended::Reset));
        let (d, plain) = tokio::join!(forward.connect(), accept());
        d.write(b"d").await.unwrap();
        assert_eq!(plain.read(1).await, b"d");
        forward.closed_of(&a).await
    };
    let (seen, (), closed, ()) =
        tokio::join!(b.read_to_end_soon(), upload, interrupt, return_all(&echo));
    assert_eq!(
        (seen.sha256, seen.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
    assert_eq!(
        (&*closed.reason, &*closed.origin),
        ("TARGET_RESET", "target")
    );
    forward
        .closed_of(&b)
        .await
        .assert_finished(16 * MIB, 16 * MIB);
    drop((a, b, echo));
    world.settle().await;
}

/// Sends back all that `socket` brings, then FIN.
async fn return_all(socket: &Socket) {
    let mut buffer = vec![0; 64 * 1024];
    let end = loop {
        match socket.read_some(&mut buffer).await {
            Ok(read) => socket.write(&buffer[..read]).await.unwrap(),
            Err(end) => break end,
        }
    };
    assert_eq!(end, Ended::Eof);
    socket.shutdown_write().unwrap();
}

async fn pf_13_target_reset_reaches_the_client(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::resetter(1000).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    assert_eq!(client.read(1000).await.len(), 1000);
    target.next().await.cue();
    let seen = client.read_to_end_soon().await;
    assert_eq!((seen.bytes_read, seen.read_end), (1000, Some(Ended::Reset)));
    let closed = forward.closed_of(&client).await;
    assert_eq!(
        (&*closed.reason, &*closed.origin),
        ("TARGET_RESET", "target")
    );

    let raw = Client::connect(&world).await;
    let mut call = raw.forward(target.address(), &raw::STREAM).await;
    assert_eq!(call.read(1000).await.len(), 1000);
    target.next().await.cue();
    let outcome = call.outcome().await.unwrap();
    assert_eq!(
        (outcome.code, &*outcome.reason),
        (Code::Unavailable, "TARGET_RESET")
    );
    drop((client, raw, call));
    world.settle().await;
}

async fn pf_14_client_reset_reaches_the_target(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::sink().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write_content(Content::new(MIB, 14)).await.unwrap();
    let connection = target.next().await;
    connection.until_read(MIB / 2).await;
    let peer = client.local_address().unwrap();
    client.reset();
    let seen = connection.until_read_end().await;
    assert_eq!(seen.read_end, Some(Ended::Reset));
    let closed = forward.closed(peer).await;
    assert_eq!(
        (&*closed.reason, &*closed.origin),
        ("CLIENT_RESET", "client")
    );
    world.settle().await;
}

async fn pf_14_a_client_that_dies_with_unread_data_is_a_reset(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let unread = Step::Send(Bytes::from_static(&[3; 1000]));
    let target = Target::start([unread, Step::ReadToEnd]).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write_content(Content::new(MIB, 14)).await.unwrap();
    let connection = target.next().await;
    connection.until_read(MIB).await;
    assert_eq!(client.read(1).await.len() % 1000, 1);
    drop(client);
    let seen = connection.until_read_end().await;
    assert_eq!(seen.read_end, Some(Ended::Reset));
    world.settle().await;
}

async fn pf_14_a_killed_forward_is_a_reset(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::sink().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write_content(Content::new(MIB, 14)).await.unwrap();
    let connection = target.next().await;
    connection.until_read(MIB).await;
    forward.kill();
    let seen = connection.until_read_end().await;
    assert_eq!(seen.read_end, Some(Ended::Reset));
    assert_ne!(client.read_to_end_soon().await.read_end, Some(Ended::Eof));
    world.settle().await;
}

/// How a peer may stop talking without a word.
const CODES: [Reason; 3] = [Reason::NO_ERROR, Reason::CANCEL, Reason::INTERNAL_ERROR];

async fn pf_16_a_reset_of_the_relay_is_no_end(topology: Topology) {
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let forward = world.forward_to("localhost:7").await;
    for code in CODES {
        let client = forward.connect().await;
        let (_, mut relay) = supervisor.serve().await;
        for _ in 0..10 {
            relay.data("data").await;
        }
        assert_eq!(client.read(40).await.len(), 40);
        relay.outbox.reset(code);
        let seen = client.read_to_end_soon().await;
        assert_eq!(
            (seen.bytes_read, seen.read_end),
            (40, Some(Ended::Reset)),
            "{code:?}"
        );
        let closed = forward.closed_of(&client).await;
        assert_eq!(closed.reason, "TRANSPORT_LOST", "{code:?}");
    }
    let client = forward.connect().await;
    let (_, mut relay) = supervisor.serve().await;
    relay.data("data").await;
    assert_eq!(client.read(4).await, b"data");
    drop((supervisor, relay));
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    assert_eq!(forward.closed_of(&client).await.reason, "SUPERVISOR_LOST");
    drop(client);
    world.settle().await;
}

async fn pf_16_a_reset_of_the_forward_is_no_end(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::sink().unwrap();
    for capabilities in [&raw::STREAM[..], &[]] {
        for code in CODES {
            let client = Client::connect(&world).await;
            let mut forward = client.forward(target.address(), capabilities).await;
            for _ in 0..10 {
                forward.data("data").await;
            }
            let connection = target.next().await;
            connection.until_read(40).await;
            forward.reset(code);
            let seen = connection.until_read_end().await;
            assert_eq!(seen.read_end, Some(Ended::Reset), "{code:?}");
        }
        let client = Client::connect(&world).await;
        let mut forward = client.forward(target.address(), capabilities).await;
        forward.data("data").await;
        let connection = target.next().await;
        connection.until_read(4).await;
        drop((client, forward));
        assert_eq!(
            connection.until_read_end().await.read_end,
            Some(Ended::Reset)
        );
    }
    world.settle().await;
}

/// The test is the gateway, which knows nothing but `ForwardTcp`.
#[tokio::test]
async fn pf_16_a_reset_by_the_gateway_is_no_end() {
    let capabilities = raw::STREAM.join(",");
    for agreed in [Some(&*capabilities), None] {
        let gateway = raw_h2::Server::bind().await.unwrap();
        let access = Access::new([format!("http://{}", gateway.address().unwrap())]);
        let forward = Forward::start(Via::Sdk, &access, "localhost:7").await;
        let first = forward.connect().await;
        let mut connection = gateway.accept().await.unwrap();
        let (_, inbox) = answer(&mut connection, agreed).await;
        drop((first, inbox));
        for code in CODES {
            let client = forward.connect().await;
            let (mut outbox, _inbox) = answer(&mut connection, agreed).await;
            assert_eq!(client.read(40).await.len(), 40);
            outbox.reset(code);
            let seen = client.read_to_end_soon().await;
            assert_eq!(seen.read_end, Some(Ended::Reset), "{code:?}");
        }
        let client = forward.connect().await;
        let (outbox, inbox) = answer(&mut connection, agreed).await;
        assert_eq!(client.read(40).await.len(), 40);
        drop((outbox, inbox, connection, gateway));
        assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
        assert_eq!(forward.closed_of(&client).await.reason, "TRANSPORT_LOST");
    }
}

/// Takes the next `ForwardTcp` and sends ten frames of four bytes.
async fn answer(
    connection: &mut raw_h2::Connection,
    agreed: Option<&str>,
) -> (raw_h2::Outbox, raw_h2::Inbox) {
    loop {
        let call = connection.call().await;
        if call.path() != path::FORWARD_TCP {
            call.refuse(Code::Unimplemented).unwrap();
            continue;
        }
        let mut headers = HeaderMap::new();
        if let Some(agreed) = agreed {
            headers.insert("tidegate-capabilities", agreed.parse().unwrap());
        }
        let (mut outbox, mut inbox) = call.accept(headers).unwrap();
        assert!(matches!(inbox.next().await, Received::Message(_)));
        for _ in 0..10 {
            outbox.message(&ForwardFrame::data("data")).await.unwrap();
        }
        return (outbox, inbox);
    }
}

async fn pf_18_the_target_learns_that_the_client_has_gone(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::endless().unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.read(MIB as usize).await;
    drop(client);
    let connection = target.next().await;
    assert!(connection.until_write_fails(MOMENT).await.was_reset());
    world.settle().await;
}

async fn pf_22_a_client_learns_that_the_target_has_gone(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::start([Step::Read(64 * 1024)]).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    let refused = wait::within(MOMENT, "the write to fail", client.write_until_refused()).await;
    assert_ne!(refused, Ended::Eof);
    assert!(!forward.closed_of(&client).await.is_finished());
    drop(client);
    world.settle().await;
}

/// A client has finished and waits; the target sends a little, again and again.
async fn waiting_for_more(world: &World) -> (Target, Forward, Socket) {
    let every = Duration::from_millis(10);
    let target = Target::start([
        Step::ReadToEnd,
        Step::Trickle {
            every,
            times: 100_000,
        },
    ]);
    let target = target.unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write(b"request").await.unwrap();
    client.shutdown_write().unwrap();
    assert_eq!(client.read(3).await.len(), 3);
    (target, forward, client)
}

async fn pf_23_a_client_that_dies_after_its_half_close_is_noticed(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let (target, forward, client) = waiting_for_more(&world).await;
    forward.kill();
    target.next().await.until_write_fails(MOMENT).await;
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    world.settle().await;
}

async fn pf_23_a_connection_reset_after_a_half_close_is_noticed(topology: Topology) {
    let world = World::start(topology, Options::new().client_proxy()).await;
    let (target, forward, client) = waiting_for_more(&world).await;
    world.client_proxy().end_all(Ending::Reset);
    target.next().await.until_write_fails(MOMENT).await;
    assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Reset));
    assert_eq!(forward.closed_of(&client).await.reason, "TRANSPORT_LOST");
    drop(client);
    world.settle().await;
}
