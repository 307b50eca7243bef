//! Much of what is small: nothing that a library takes for an attack, and nothing without an answer.

use std::time::Duration;

use futures_util::future::join_all;
use h2::Reason;
use prost::Message;
use tidegate_e2e::measure::ping_pong;
use tidegate_e2e::raw::{self, Client, Supervisor};
use tidegate_e2e::world::open;
use tidegate_e2e::{Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::messages::{ForwardFrame, ForwardPayload, RelayFrame, RelayPayload};
use tidegate_testkit::raw_h2::Received;
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait::within;
use tonic::Code;

use crate::{MIB, MOMENT};

every_topology! {
    fc_11_a_burst_of_opens_is_answered_to_the_last,
    fc_11_a_burst_beyond_the_limit_is_answered_too,
    fc_12_large_writes_travel_in_small_frames,
    fc_12_frames_too_large_end_their_stream_or_are_split,
    fc_15_many_small_writes_into_a_stalled_target_are_no_flood,
    fc_15_small_frames_that_wait_become_few,
    fc_15_many_cancelled_opens_are_no_flood,
}

async fn fc_11_a_burst_of_opens_is_answered_to_the_last(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let answers = burst(&world).await;
    assert_eq!(answers, (500, 0));
    world.settle().await;
}

async fn fc_11_a_burst_beyond_the_limit_is_answered_too(topology: Topology) {
    let options = Options::new().gateway("max_pending_per_sandbox", 50);
    let world = World::start(topology, options).await;
    let (opened, refused) = burst(&world).await;
    assert!(
        opened >= 50 && refused > 0,
        "{opened} opened, {refused} refused"
    );
    world.settle().await;
}

/// Opens 500 streams at once and counts those that were opened and those that were refused.
async fn burst(world: &World) -> (usize, usize) {
    let echo = Target::echo().unwrap();
    let client = world.client();
    let opens = (0..500).map(|_| open(&client, echo.address()));
    let answers = within(3 * MOMENT, "an answer to each", join_all(opens)).await;
    let (mut opened, mut refused) = (0, 0);
    for answer in answers {
        match answer {
            Ok(_) => opened += 1,
            Err(end) => {
                assert_eq!(end.reason.as_str(), "LIMIT_PENDING", "{end}");
                refused += 1;
            }
        }
    }
    (opened, refused)
}

async fn fc_12_large_writes_travel_in_small_frames(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let content = Content::new(20 * MIB, 12);
    let target = Target::start([Step::Send(content.to_vec().into())]).unwrap();
    let client = Client::connect(&world).await;
    let mut forward = client.forward(target.address(), &raw::STREAM).await;
    let inbox = forward.opened().await;
    let (mut bytes, mut largest) = (Vec::new(), 0);
    loop {
        let Received::Message(message) = within(MOMENT, "data", inbox.next()).await else {
            panic!("the stream ended before its FIN frame");
        };
        match ForwardFrame::decode(message).unwrap().payload {
            Some(ForwardPayload::Data(data)) => {
                largest = largest.max(data.len());
                bytes.extend_from_slice(&data);
            }
            Some(ForwardPayload::HalfClose(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(bytes == content.to_vec() && largest <= 65_536, "{largest}");
    forward.half_close().await;
    assert!(forward.outcome().await.unwrap().is_ok());
    drop((client, forward));
    world.settle().await;
}

async fn fc_12_frames_too_large_end_their_stream_or_are_split(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let echo = Target::echo().unwrap();
    let client = Client::connect(&world).await;
    let mut beside = client.forward(echo.address(), &raw::STREAM).await;
    for (size, capabilities, code) in [
        (65_536, &raw::STREAM[..], None),
        (65_537, &raw::STREAM[..], Some(Code::ResourceExhausted)),
        (65_537, &[], None),
        (1_000_000, &[], None),
        (5 << 20, &[], Some(Code::ResourceExhausted)),
    ] {
        let mut forward = client.forward(echo.address(), capabilities).await;
        forward.opened().await;
        let sent = forward.send(ForwardFrame::data(vec![b'x'; size]));
        let sent = within(MOMENT, "the frame to be taken", sent).await;
        match code {
            None => {
                sent.unwrap();
                assert_eq!(forward.read(size).await.len(), size);
                forward.reset(Reason::CANCEL);
            }
            Some(code) => {
                let outcome = forward.outcome().await.unwrap();
                assert_eq!(
                    (outcome.code, &*outcome.reason),
                    (code, "FRAME_TOO_LARGE"),
                    "{size}"
                );
            }
        }
        beside.data("beside").await;
        assert_eq!(beside.read(6).await, b"beside");
    }
    let oversize = world
        .gateway()
        .metrics()
        .sum("tidegate_legacy_oversize_frames_total");
    assert!(oversize >= 1.0, "{oversize}");
    drop((client, beside));
    world.settle().await;
}

async fn fc_15_many_small_writes_into_a_stalled_target_are_no_flood(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let stalled = Target::start([Step::Cue, Step::ReadToEnd]).unwrap();
    let echo = Target::echo().unwrap();
    let forward = world.forward(&stalled).await;
    let beside = world.forward(&echo).await.connect().await;
    let local = forward.connect().await;
    let raw = Client::connect(&world).await;
    let mut legacy = raw.forward(stalled.address(), &[]).await;
    let (writes, frames) = (sized(10_000, 50_000), sized(5_000, 50_000));
    let write = async {
        for _ in 0..writes {
            local.write(b".").await.unwrap();
            tokio::task::yield_now().await;
        }
        local.shutdown_write().unwrap();
    };
    let send = async {
        for _ in 0..frames {
            legacy.data(".").await;
            tokio::task::yield_now().await;
        }
        legacy.outbox.finish().unwrap();
    };
    let pings = ping_pong(&beside, b"ping", 100, Duration::from_millis(5));
    tokio::join!(write, send, pings);
    let (first, second) = (stalled.next().await, stalled.next().await);
    assert_eq!(first.seen().bytes_read + second.seen().bytes_read, 0);
    let mut read = Vec::new();
    for connection in [first, second] {
        connection.cue();
        let seen = connection.until_read_end().await;
        assert_eq!(seen.read_end, Some(Ended::Eof));
        read.push(seen.bytes_read);
    }
    read.sort_unstable();
    let mut sent = [writes, frames];
    sent.sort_unstable();
    assert_eq!(read, sent);
    assert!(legacy.outcome().await.unwrap().is_ok());
    raw.raw().ping().await.unwrap();
    assert_eq!(world.sessions(), 1);
    drop((beside, local, raw, legacy));
    world.settle().await;
}

/// Bytes that must wait are not kept in the pieces that they came in.
async fn fc_15_small_frames_that_wait_become_few(topology: Topology) {
    const BULK: usize = 24;
    const SMALL: usize = 2000;
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let mut supervisor = Supervisor::connect(&world, &raw::SESSION).await;
    let client = Client::connect(&world).await;
    let mut forward = client
        .forward("127.0.0.1:7".parse().unwrap(), &raw::STREAM)
        .await;
    let (_, mut relay) = supervisor.serve().await;
    forward.opened().await;
    // More than the supervisor's window takes, which does not read.
    for _ in 0..BULK {
        forward.data(vec![b'x'; 65_536]).await;
    }
    for _ in 0..SMALL {
        forward.data(".").await;
    }
    client.raw().ping().await.unwrap();
    let inbox = relay.opened().await.unwrap();
    let (mut bytes, mut frames) = (0, 0);
    while bytes < BULK * 65_536 + SMALL {
        let Received::Message(message) = within(MOMENT, "data", inbox.next()).await else {
            panic!("the stream ended after {bytes} bytes");
        };
        let frame = RelayFrame::decode(message).unwrap();
        if let Some(RelayPayload::Data(data)) = frame.payload {
            bytes += data.len();
            frames += 1;
        }
    }
    assert!(frames < BULK + SMALL / 10, "{frames} frames");
    drop((client, forward, relay, supervisor));
    world.settle().await;
}

async fn fc_15_many_cancelled_opens_are_no_flood(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let echo = Target::echo().unwrap();
    let beside = world.forward(&echo).await.connect().await;
    let raw = Client::connect(&world).await;
    let mut survivor = raw.forward(echo.address(), &raw::STREAM).await;
    let cancelling = async {
        for _ in 0..1000 {
            let mut forward = raw.forward(echo.address(), &raw::STREAM).await;
            forward.reset(Reason::CANCEL);
        }
    };
    let pings = ping_pong(&beside, b"ping", 100, Duration::from_millis(2));
    tokio::join!(cancelling, pings);
    survivor.data("survivor").await;
    assert_eq!(survivor.read(8).await, b"survivor");
    assert_eq!(world.sessions(), 1);
    drop((beside, raw, survivor));
    world.settle().await;
}
