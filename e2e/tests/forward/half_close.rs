//! One direction ends and the other lives on.

use std::time::{Duration, Instant};

use bytes::Bytes;
use tidegate_e2e::raw::{self, Client, Relay, Supervisor};
use tidegate_e2e::{Forward, Options, Topology, World, every_topology, sized};
use tidegate_testkit::content::Content;
use tidegate_testkit::fault_proxy::{Direction, FaultProxy};
use tidegate_testkit::messages::{Cause, FromSupervisor, RelayClose};
use tidegate_testkit::raw_h2::Received;
use tidegate_testkit::record::Ended;
use tidegate_testkit::socket::Socket;
use tidegate_testkit::target::{Step, Target};
use tidegate_testkit::wait;

use crate::MOMENT;

every_topology! {
    pf_01_a_client_that_ends_first_gets_its_answer,
    pf_02_a_target_that_ends_first_gets_the_rest_of_the_upload,
    pf_03_the_end_of_the_target_reaches_a_client_that_does_not_close,
    pf_03_an_idle_connection_closed_by_the_target_is_not_used_again,
    pf_04_the_tail_reaches_a_slow_reader,
    pf_06_a_close_in_its_own_words_does_not_overtake_data,
    pf_06_a_close_with_a_cause_is_an_abort,
    pf_07_an_empty_frame_is_no_end,
}

async fn pf_01_a_client_that_ends_first_gets_its_answer(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let pause = Step::Pause(Duration::from_millis(500));
    let target = Target::start([Step::ReadToEnd, pause, Step::SendTotal]).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    let begun = Instant::now();
    client.write(b"12345").await.unwrap();
    client.shutdown_write().unwrap();
    let seen = client.read_to_end_soon().await;
    let waited = begun.elapsed();
    assert_eq!(
        (&seen.head[..], seen.read_end),
        (&b"OK 5\n"[..], Some(Ended::Eof))
    );
    assert!(
        waited >= Duration::from_millis(500) && waited < MOMENT,
        "{waited:?}"
    );
    let target = target.next().await.until_read_end().await;
    assert_eq!((target.bytes_read, target.read_end), (5, Some(Ended::Eof)));
    forward.closed_of(&client).await.assert_finished(5, 5);
    drop(client);
    world.settle().await;
}

async fn pf_02_a_target_that_ends_first_gets_the_rest_of_the_upload(topology: Topology) {
    const SIZE: u64 = 1 << 20;
    const PIECES: u64 = 20;
    let world = World::start(topology, Options::new()).await;
    let (download, upload) = (Content::new(SIZE, 1), Content::new(SIZE, 2));
    let target = Target::finish_first(download).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    let seen = client.read_to_end_soon().await;
    assert_eq!(
        (seen.sha256, seen.read_end),
        (download.sha256(), Some(Ended::Eof))
    );
    for piece in upload.to_vec().chunks((SIZE / PIECES) as usize) {
        client.write(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    client.shutdown_write().unwrap();
    let seen = target.next().await.until_read_end().await;
    assert_eq!(
        (seen.sha256, seen.read_end),
        (upload.sha256(), Some(Ended::Eof))
    );
    forward.closed_of(&client).await.assert_finished(SIZE, SIZE);
    assert_eq!(client.seen().write_end, None);
    drop(client);
    world.settle().await;
}

async fn pf_03_the_end_of_the_target_reaches_a_client_that_does_not_close(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let target = Target::start([Step::Read(4), Step::Send(Bytes::from_static(b"imok"))]).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    client.write(b"ruok").await.unwrap();
    let seen = wait::within(MOMENT, "the target's end", client.read_to_end()).await;
    assert_eq!(
        (&seen.head[..], seen.read_end),
        (&b"imok"[..], Some(Ended::Eof))
    );
    drop(client);
    world.settle().await;
}

/// A client keeps its connection for the next request, as HTTP clients do, and looks before it uses
/// it again. The server closes each connection some time after its second answer.
async fn pf_03_an_idle_connection_closed_by_the_target_is_not_used_again(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    let answer = || [Step::Read(8), Step::Send(Bytes::from_static(b"response"))];
    let mut script = [answer(), answer()].concat();
    script.push(Step::Pause(Duration::from_millis(200)));
    let target = Target::start(script).unwrap();
    let forward = world.forward(&target).await;
    let mut kept: Option<Socket> = None;
    for request in 0..20 {
        let client = match kept.take() {
            Some(client) if !has_ended(&client).await => client,
            _ => forward.connect().await,
        };
        client.write(b"request!").await.unwrap();
        let answer = wait::within(MOMENT, "the answer", client.read(8)).await;
        assert_eq!(answer, b"response", "request {request}");
        kept = Some(client);
        if request % 2 == 1 {
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
    }
    assert_eq!(target.accepted(), 10);
    drop(kept);
    world.settle().await;
}

/// Whether an idle connection has something to say, which can only be its end.
async fn has_ended(client: &Socket) -> bool {
    let end = tokio::time::timeout(Duration::from_millis(1), client.read_to_end()).await;
    end.is_ok()
}

async fn pf_04_the_tail_reaches_a_slow_reader(topology: Topology) {
    const SIZE: u64 = 8 << 20;
    let world = World::start(topology, Options::new()).await;
    let every = sized(Duration::from_millis(15), Duration::from_millis(50));
    let slowly = Step::ReadSlowly {
        chunk: 64 * 1024,
        every,
    };
    let target = Target::start([Step::Finish, Step::Cue, slowly]).unwrap();
    let forward = world.forward(&target).await;
    let client = forward.connect().await;
    let upload = Content::new(SIZE, 4);
    let uploading = async {
        client.write_content(upload).await.unwrap();
        client.shutdown_write().unwrap();
    };
    let reading = async {
        let target = target.next().await;
        // Its end is there at once, and ends nothing: more is on its way than a socket holds.
        assert_eq!(client.read_to_end_soon().await.read_end, Some(Ended::Eof));
        tokio::time::sleep(Duration::from_millis(500)).await;
        let early = forward.closed_now(client.local_address().unwrap());
        assert_eq!((target.seen().bytes_read, early), (0, None));
        target.cue();
        target.until_read_end().await
    };
    let ((), seen) = tokio::join!(uploading, reading);
    assert_eq!((seen.bytes_read, seen.sha256), (SIZE, upload.sha256()));
    assert_eq!(seen.read_end, Some(Ended::Eof));
    forward.closed_of(&client).await.assert_finished(SIZE, 0);
    drop(client);
    world.settle().await;
}

/// Data travels this far behind the control stream on which the close is said.
const BEHIND: Duration = Duration::from_millis(300);
const PIECE: u64 = 64 * 1024;
const ROUNDS: usize = 200;

async fn pf_06_a_close_in_its_own_words_does_not_overtake_data(topology: Topology) {
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let mut closing = Closing::begin(&world, None).await;
    for client in &closing.clients {
        let seen = client.read_to_end_soon().await;
        assert_eq!((seen.bytes_read, seen.read_end), (PIECE, Some(Ended::Eof)));
        client.shutdown_write().unwrap();
    }
    for relay in &mut closing.relays {
        assert_eq!(relay.until_fin().await, Ok(Vec::new()));
        relay.end();
    }
    for relay in &mut closing.relays {
        assert!(matches!(relay.over().await, Received::Trailers(_)));
    }
    for client in &closing.clients {
        closing
            .forward
            .closed_of(client)
            .await
            .assert_finished(0, PIECE);
    }
    drop(closing);
    world.settle().await;
}

async fn pf_06_a_close_with_a_cause_is_an_abort(topology: Topology) {
    let world = World::start(topology, Options::new().no_supervisor()).await;
    let cause = Cause {
        reason: "TARGET_RESET".to_owned(),
        origin: "target".to_owned(),
        ..Cause::default()
    };
    let closing = Closing::begin(&world, Some(cause)).await;
    for client in &closing.clients {
        let seen = client.read_to_end_soon().await;
        assert_eq!(
            seen.read_end,
            Some(Ended::Reset),
            "{} bytes",
            seen.bytes_read
        );
        let closed = closing.forward.closed_of(client).await;
        assert_eq!(
            (&*closed.reason, &*closed.origin),
            ("TARGET_RESET", "target")
        );
    }
    drop(closing);
    world.settle().await;
}

/// Many streams on each of which a supervisor has sent data, FIN and, on a faster way, a close.
struct Closing {
    forward: Forward,
    clients: Vec<Socket>,
    relays: Vec<Relay>,
    _supervisor: Supervisor,
    _line: FaultProxy,
}

impl Closing {
    async fn begin(world: &World, cause: Option<Cause>) -> Self {
        let line = FaultProxy::start(world.gateway_address()).unwrap();
        line.delay(Direction::Upstream, BEHIND);
        let connecting = Supervisor::connect_with_data(world, &raw::SESSION, line.address());
        let mut supervisor = connecting.await;
        let forward = world.forward_to("localhost:7").await;
        let mut clients = Vec::new();
        for _ in 0..ROUNDS {
            clients.push(forward.connect().await);
        }
        let mut served = Vec::new();
        for _ in 0..ROUNDS {
            served.push(supervisor.serve().await);
        }
        for (_, relay) in &mut served {
            relay.opened().await.unwrap();
        }
        let mut relays = Vec::new();
        for (open, mut relay) in served {
            relay.data(vec![7; PIECE as usize]).await;
            relay.half_close().await;
            let close = RelayClose {
                channel_id: open.channel_id,
                reason: "done".to_owned(),
                code: if cause.is_some() { UNAVAILABLE } else { 0 },
                cause: cause.clone(),
            };
            supervisor.say(FromSupervisor::RelayClose(close)).await;
            relays.push(relay);
        }
        Self {
            forward,
            clients,
            relays,
            _supervisor: supervisor,
            _line: line,
        }
    }
}

/// The nearest code of the proposed revision.
const UNAVAILABLE: i32 = 4;

async fn pf_07_an_empty_frame_is_no_end(topology: Topology) {
    let world = World::start(topology, Options::new()).await;
    for capabilities in [&raw::STREAM[..], &[]] {
        let target = Target::start([Step::ReadToEnd]).unwrap();
        let client = Client::connect(&world).await;
        let mut forward = client.forward(target.address(), capabilities).await;
        for data in ["", "x", ""] {
            forward.data(data).await;
        }
        let connection = target.next().await;
        connection.until_read(1).await;
        tokio::time::sleep(sized(Duration::from_millis(300), Duration::from_secs(1))).await;
        assert_eq!(connection.seen().read_end, None);
        forward.data("y").await;
        if capabilities.is_empty() {
            forward.outbox.finish().unwrap();
        } else {
            forward.half_close().await;
        }
        let seen = connection.until_read_end().await;
        assert_eq!(
            (&seen.head[..], seen.read_end),
            (&b"xy"[..], Some(Ended::Eof))
        );
        assert!(forward.outcome().await.unwrap().is_ok());
    }
    world.settle().await;
}
