//! How silence is filled, and what is no silence.

use std::time::Duration;

use http::HeaderMap;
use prost::Message as _;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::limits::StreamLimits;
use tidegate_testkit::content::Content;
use tidegate_testkit::messages::{ForwardFrame, ForwardPayload, path::FORWARD_TCP};
use tidegate_testkit::raw_h2::{Client, Received};
use tidegate_testkit::target::Target;
use tidegate_testkit::wait::{self, GENEROUS};
use tidegate_transport::Settings;

use crate::common::{Server, init};

#[tokio::test]
async fn a_reader_that_takes_nothing_finds_no_keepalives_when_it_does() {
    // More than the window of a client that reads nothing.
    let content = Content::new(300_000, 9);
    let target = Target::source(content).unwrap();
    let interval = Duration::from_millis(20);
    let limits = StreamLimits {
        keepalive: Some(interval),
        ..StreamLimits::default()
    };
    let server = Server::start(&target, Capabilities::STREAM, Settings::default(), limits);
    let client = Client::connect(server.address).await.unwrap();
    let mut call = client.open(FORWARD_TCP, HeaderMap::new()).await.unwrap();
    call.outbox.send(init(Capabilities::STREAM)).await.unwrap();
    let (_, _, mut inbox) = call.response.headers().await.unwrap();
    let waits = wait::until_async(GENEROUS, async || server.buffered.get() > 0);
    waits.await.unwrap();
    tokio::time::sleep(30 * interval).await;
    let (mut received, mut empty) = (0, 0);
    while received < content.len() {
        let Received::Message(message) = inbox.next().await else {
            panic!("the target has more")
        };
        match ForwardFrame::decode(message).unwrap().payload {
            Some(ForwardPayload::Data(data)) if data.is_empty() => empty += 1,
            Some(ForwardPayload::Data(data)) => received += data.len() as u64,
            other => panic!("the target sends data, not {other:?}"),
        }
    }
    loop {
        let Received::Message(message) = inbox.next().await else {
            panic!("the target has ended")
        };
        match ForwardFrame::decode(message).unwrap().payload {
            Some(ForwardPayload::Data(_)) => empty += 1,
            Some(ForwardPayload::HalfClose(_)) => break,
            other => panic!("nothing but an end follows, not {other:?}"),
        }
    }
    // A moment between two pieces may have been silent; thirty were not.
    assert!(empty < 10, "{empty} keepalives");
}
