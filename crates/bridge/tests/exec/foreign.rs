//! Callers that are no tunnels of ours, byte by byte.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tidegate_bridge::{PipeReceiver, PipeSender};
use tidegate_lifecycle::exec::KillScope;
use tidegate_lifecycle::id::SandboxName;
use tidegate_lifecycle::limits::MAX_LEGACY_MESSAGE;
use tidegate_testkit::content::Content;
use tidegate_testkit::raw_h2::{Call as RawCall, Client, Received, grpc};
use tidegate_testkit::wait::{self, GENEROUS};
use tidegate_transport::Settings;
use tidegate_wire::exec::{Dialect, Direction, ExecRequest, Item, ItemReader, Start};
use tidegate_wire::frame::FrameLimit;
use tidegate_wire::metadata;

use crate::stage::{Stage, bounded, command};
use crate::{Hands, LEGACY, exit, output, stdin};

/// What precedes the payload of a large message: its key, and a length of three bytes.
const HEAD: usize = 4;

fn request(start: Start) -> ExecRequest {
    let sandbox = SandboxName::parse("local").unwrap();
    ExecRequest { sandbox, start }
}

/// Stdin in one message, however large.
fn whole(payload: &[u8]) -> Bytes {
    let mut message = BytesMut::from(&[0x12][..]);
    let mut len = payload.len();
    while len >= 0x80 {
        message.extend_from_slice(&[len as u8 | 0x80]);
        len >>= 7;
    }
    message.extend_from_slice(&[len as u8]);
    message.extend_from_slice(payload);
    grpc::frame_bytes(0, &message)
}

async fn hands(stage: &mut Stage) -> Hands {
    let (sender, receiver): (PipeSender, PipeReceiver) = stage.runner().await;
    let mut runner = Hands { sender, receiver };
    assert!(matches!(runner.hears().await, Item::Start(_)));
    runner
}

/// A caller that offers nothing, and the runner of its command.
async fn interactive(stage: &mut Stage) -> (Client, RawCall, Hands) {
    let client = Client::connect(stage.address).await.unwrap();
    let path = metadata::EXEC_SANDBOX_INTERACTIVE;
    let mut call = client.open(path, HeaderMap::new()).await.unwrap();
    let first = request(command(false).start).encode_first();
    call.outbox.send(first).await.unwrap();
    let mut runner = hands(stage).await;
    runner.starts().await;
    (client, call, runner)
}

impl Hands {
    async fn starts(&mut self) {
        let started = Item::Started(Ok(KillScope::Cgroup));
        bounded(self.sender.send(started)).await.unwrap();
    }

    /// All of stdin, to its end.
    async fn hears_stdin(&mut self) -> Vec<u8> {
        let mut heard = Vec::new();
        loop {
            match self.hears().await {
                Item::Stdin(data) => heard.extend_from_slice(&data),
                Item::StdinFin => return heard,
                other => panic!("stdin, not {other:?}"),
            }
        }
    }
}

async fn arrives(window: u32, sizes: impl Iterator<Item = usize>) {
    let settings = Settings {
        stream_window: window,
        ..Settings::default()
    };
    let mut stage = Stage::with(LEGACY, settings).await;
    let (_client, mut call, mut runner) = interactive(&mut stage).await;
    let (mut said, mut expected) = (Vec::new(), Vec::new());
    for (seed, size) in (1..).zip(sizes) {
        let payload = Content::new((size - HEAD) as u64, seed).to_vec();
        said.push(whole(&payload));
        expected.extend_from_slice(&payload);
    }
    let send = async {
        for message in said {
            call.outbox.send(message).await.unwrap();
        }
        call.outbox.finish().unwrap();
    };
    let sent = wait::within(GENEROUS, "room for large messages", send);
    let ((), heard) = tokio::join!(sent, runner.hears_stdin());
    assert!(heard == expected, "{} of {}", heard.len(), expected.len());
}

#[tokio::test]
async fn stdin_in_messages_larger_than_the_window_arrives_whole() {
    for window in [65_535, 1 << 20] {
        arrives(window, [MAX_LEGACY_MESSAGE; 3].into_iter()).await;
    }
}

#[tokio::test]
async fn stdin_in_messages_that_fill_the_window_arrives_whole() {
    for size in MAX_LEGACY_MESSAGE - HEAD..=MAX_LEGACY_MESSAGE {
        arrives(1 << 20, std::iter::once(size)).await;
    }
}

#[tokio::test]
async fn what_is_lent_for_stdin_is_no_more_than_one_message() {
    let mut stage = Stage::new(LEGACY).await;
    let (_client, mut call, _runner) = interactive(&mut stage).await;
    let message = whole(&vec![7; MAX_LEGACY_MESSAGE - HEAD]);
    let flood = async {
        loop {
            call.outbox.send(message.clone()).await.unwrap();
        }
    };
    let total = &stage.buffered;
    let until_blocked = async {
        let mut before = usize::MAX;
        while total.get() < MAX_LEGACY_MESSAGE || total.get() != before {
            before = total.get();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        before
    };
    let held = tokio::select! {
        held = wait::within(GENEROUS, "a standstill", until_blocked) => held,
        never = flood => never,
    };
    // A window on each of two hops, and one message; in frames of 64 KiB, each with its head.
    let lent = 2 * (1 << 20) + MAX_LEGACY_MESSAGE;
    let most = lent + lent.div_ceil(64 * 1024) * 16;
    assert!(held <= most, "{held} bytes are held, of {most}");
}

#[tokio::test]
async fn the_door_with_one_request_gives_all_of_stdin_and_its_end() {
    let mut stage = Stage::new(LEGACY).await;
    let client = Client::connect(stage.address).await.unwrap();
    let path = metadata::EXEC_SANDBOX;
    let mut call = client.open(path, HeaderMap::new()).await.unwrap();
    let mut start = command(false).start;
    start.stdin = Bytes::from_static(b"all of it");
    call.outbox.send(request(start).encode()).await.unwrap();
    // Its request ends when it likes: stdin does not wait for that.
    let mut runner = hands(&mut stage).await;
    assert_eq!(runner.hears().await, stdin(b"all of it"));
    assert_eq!(runner.hears().await, Item::StdinFin);
    call.outbox.finish().unwrap();
    runner.starts().await;
    let (_, headers, mut inbox) = bounded(call.response.headers()).await.unwrap();
    assert!(!headers.contains_key("grpc-status"), "it runs");
    runner.writes(b"answer").await;
    runner.exits(7).await;
    let (messages, end) = bounded(inbox.rest()).await;
    let Received::Trailers(trailers) = end else {
        panic!("a status, not {end:?}")
    };
    assert_eq!(trailers["grpc-status"], "0");
    let mut reader = ItemReader::new(Dialect::Client, Direction::Event, FrameLimit::Strict);
    let mut heard = Vec::new();
    for message in messages {
        reader.push(grpc::frame_bytes(0, &message));
        heard.extend(reader.next().unwrap());
    }
    assert_eq!(heard, [output(b"answer"), exit(7)]);
}
