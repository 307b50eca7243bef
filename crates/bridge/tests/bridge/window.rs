//! What a peer may send before, and because, it is given credit.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::HeaderMap;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::limits::{MAX_LEGACY_MESSAGE, StreamLimits};
use tidegate_testkit::content::Content;
use tidegate_testkit::messages::path::FORWARD_TCP;
use tidegate_testkit::raw_h2::{Call, Client, grpc};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::{self, GENEROUS};
use tidegate_transport::Settings;
use tidegate_wire::frame::keepalive;

use crate::common::{Server, init};

/// The largest message that a legacy peer may send: a frame whose length is written with a byte too
/// many, as protobuf allows, so that it is gathered and decoded.
const WHOLE: usize = MAX_LEGACY_MESSAGE;
/// Its payload.
const PAYLOAD: usize = WHOLE - 5;

fn unusual_frame(payload: &[u8]) -> Bytes {
    let mut message = BytesMut::with_capacity(payload.len() + 5);
    message.put_u8(0x12);
    let len = payload.len();
    for shift in [0, 7, 14] {
        message.put_u8((len >> shift) as u8 | 0x80);
    }
    message.put_u8((len >> 21) as u8);
    message.put_slice(payload);
    grpc::frame_bytes(0, &message)
}

fn with_window(stream_window: u32) -> Settings {
    Settings {
        stream_window,
        ..Settings::default()
    }
}

/// A stream of a peer that offers nothing.
async fn open(server: &Server) -> (Client, Call) {
    let client = Client::connect(server.address).await.unwrap();
    let mut call = client.open(FORWARD_TCP, HeaderMap::new()).await.unwrap();
    call.outbox.send(init(Capabilities::NONE)).await.unwrap();
    (client, call)
}

async fn arrives(window: u32, messages: usize, payload: usize) {
    let content = Content::new((messages * payload) as u64, 5);
    let target = Target::sink().unwrap();
    let limits = StreamLimits::default();
    let server = Server::start(&target, Capabilities::NONE, with_window(window), limits);
    let (_client, mut call) = open(&server).await;
    let bytes = content.to_vec();
    let sent = async {
        for payload in bytes.chunks(payload) {
            call.outbox.send(unusual_frame(payload)).await.unwrap();
        }
        call.outbox.finish().unwrap();
    };
    wait::within(GENEROUS, "room for large messages", sent).await;
    let upload = target.next().await.until_read_end().await;
    assert_eq!(
        (upload.sha256, upload.read_end),
        (content.sha256(), Some(Ended::Eof))
    );
}

#[tokio::test]
async fn messages_larger_than_the_window_arrive_whole() {
    for window in [65_535, 1 << 20] {
        arrives(window, 3, PAYLOAD).await;
    }
}

#[tokio::test]
async fn messages_that_fill_the_window_arrive_whole() {
    for payload in PAYLOAD - 4..=PAYLOAD {
        arrives(1 << 20, 1, payload).await;
    }
}

#[tokio::test]
async fn what_is_lent_for_messages_is_no_more_than_one_of_them() {
    let window = 1 << 20;
    let target = Target::never_reader().unwrap();
    let limits = StreamLimits::default();
    let server = Server::start(&target, Capabilities::NONE, with_window(window), limits);
    let (_client, mut call) = open(&server).await;
    let frame = unusual_frame(&vec![7; PAYLOAD]);
    let flood = async {
        loop {
            call.outbox.send(frame.clone()).await.unwrap();
        }
    };
    // The kernel takes some of them before everything stands still.
    let until_blocked = async {
        let mut before = usize::MAX;
        while server.buffered.get() < WHOLE || server.buffered.get() != before {
            before = server.buffered.get();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        before
    };
    let held = tokio::select! {
        held = wait::within(GENEROUS, "a standstill", until_blocked) => held,
        never = flood => never,
    };
    let most = window as usize + WHOLE;
    assert!(held <= most, "{held} bytes are held, of {most}");
}

#[tokio::test]
async fn a_message_that_is_not_whole_counts_among_what_is_held() {
    let target = Target::sink().unwrap();
    let limits = StreamLimits::default();
    let mut server = Server::start(&target, Capabilities::NONE, with_window(1 << 20), limits);
    let (_client, mut call) = open(&server).await;
    let frame = unusual_frame(&vec![7; PAYLOAD]);
    let part = frame.slice(..600_005);
    call.outbox.send(part).await.unwrap();
    let counted = wait::until_async(GENEROUS, async || server.buffered.get() == 600_000);
    counted.await.unwrap();
    call.outbox.reset(h2::Reason::CANCEL);
    server.outcome().await;
    let gone = wait::until_async(GENEROUS, async || server.buffered.get() == 0);
    gone.await.unwrap();
}

#[tokio::test]
async fn framing_that_came_with_the_first_message_gets_its_credit_back() {
    let target = Target::sink().unwrap();
    let limits = StreamLimits::default();
    let server = Server::start(&target, Capabilities::NONE, with_window(65_535), limits);
    let client = Client::connect(server.address).await.unwrap();
    // From here on it knows how large a frame may be, and sends all of this in one.
    client.ping().await.unwrap();
    let mut call = client.open(FORWARD_TCP, HeaderMap::new()).await.unwrap();
    let mut first = BytesMut::from(&init(Capabilities::NONE)[..]);
    while first.len() + keepalive().len() <= 65_535 {
        first.put(keepalive());
    }
    call.outbox.send(first.freeze()).await.unwrap();
    let behind = call.outbox.send(grpc::frame_bytes(0, b"\x12\x03end"));
    wait::within(GENEROUS, "credit", behind).await.unwrap();
    target.next().await.until_read(3).await;
}
