//! The raw peers talk to each other, frame by frame.

use std::net::SocketAddr;

use h2::Reason;
use http::HeaderMap;

use super::*;
use crate::{
    messages::{ForwardFrame, path},
    wait::{self, GENEROUS},
};

async fn pair() -> (Client, Connection) {
    let server = Server::bind().await.unwrap();
    let client = Client::connect(server.address().unwrap());
    let (client, connection) = tokio::join!(client, server.accept());
    (client.unwrap(), connection.unwrap())
}

async fn call(client: &Client, connection: &mut Connection) -> (Call, Incoming) {
    let call = client
        .open(path::FORWARD_TCP, HeaderMap::new())
        .await
        .unwrap();
    (call, connection.call().await)
}

#[tokio::test]
async fn messages_and_a_status_travel() {
    let (client, mut connection) = pair().await;
    let (mut call, incoming) = call(&client, &mut connection).await;
    assert_eq!(incoming.path(), path::FORWARD_TCP);
    let (mut outbox, mut inbox) = incoming.accept(HeaderMap::new()).unwrap();
    call.outbox
        .message(&ForwardFrame::data("hello"))
        .await
        .unwrap();
    call.outbox.finish().unwrap();
    let (messages, end) = inbox.rest().await;
    assert_eq!((messages.len(), end), (1, Received::End));
    outbox
        .send(grpc::frame_bytes(0, &messages[0]))
        .await
        .unwrap();
    outbox.status(tonic::Code::Ok).unwrap();
    let (status, _, mut answer) = call.response.headers().await.unwrap();
    assert_eq!(status, 200);
    let (echoed, end) = answer.rest().await;
    assert_eq!(echoed, messages);
    assert!(matches!(end, Received::Trailers(trailers) if trailers["grpc-status"] == "0"));
    client.ping().await.unwrap();
    client.ping().await.unwrap();
}

#[tokio::test]
async fn a_reset_is_never_an_end_whatever_its_code() {
    let (client, mut connection) = pair().await;
    for code in [Reason::NO_ERROR, Reason::CANCEL, Reason::INTERNAL_ERROR] {
        let (mut call, mut incoming) = call(&client, &mut connection).await;
        call.outbox
            .message(&ForwardFrame::data("hello"))
            .await
            .unwrap();
        assert!(matches!(incoming.inbox.next().await, Received::Message(_)));
        call.outbox.reset(code);
        let end = incoming.inbox.next().await;
        assert!(matches!(end, Received::Lost(_)), "{code:?} {end:?}");
    }
}

#[tokio::test]
async fn withheld_credit_blocks_the_sender_until_it_is_given() {
    let (client, mut connection) = pair().await;
    let (mut call, mut incoming) = call(&client, &mut connection).await;
    incoming.inbox.withhold_credit();
    let upload = async {
        for _ in 0..4 {
            call.outbox
                .message(&ForwardFrame::data(vec![0; 32 * 1024]))
                .await
                .unwrap();
        }
        call.outbox.finish().unwrap();
    };
    let download = async {
        assert!(matches!(incoming.inbox.next().await, Received::Message(_)));
        incoming.inbox.give_credit().unwrap();
        incoming.inbox.rest().await
    };
    let both = async { tokio::join!(upload, download) };
    let ((), (messages, end)) = wait::within(GENEROUS, "the transfer", both).await;
    assert_eq!((messages.len(), end), (3, Received::End));
}

#[tokio::test]
async fn goaway_reaches_the_client() {
    let (client, mut connection) = pair().await;
    let (call, _incoming) = call(&client, &mut connection).await;
    connection.go_away(Some(Reason::ENHANCE_YOUR_CALM));
    // GOAWAY covers the streams above its last one; those below just lose their connection.
    assert!(call.response.headers().await.is_err());
    assert_eq!(
        client.closed().await,
        Err(StreamLost::GoAway(Reason::ENHANCE_YOUR_CALM))
    );
}

#[tokio::test]
async fn hand_written_frames_are_understood() {
    let server = Server::bind().await.unwrap();
    let address: SocketAddr = server.address().unwrap();
    let (frames, connection) = tokio::join!(Frames::connect(address), server.accept());
    let (mut frames, mut connection) = (frames.unwrap(), connection.unwrap());
    let long = "x".repeat(300);
    let mut head = Frame::grpc_request(1, path::FORWARD_TCP);
    let extra = Frame::headers(1, &[("long", &long)], false);
    head.payload = [head.payload, extra.payload].concat().into();
    frames.send(&head).await.unwrap();
    let bytes = grpc::frame(&ForwardFrame::data("hello"));
    frames.send(&Frame::data(1, bytes, false)).await.unwrap();
    let mut incoming = connection.call().await;
    assert_eq!(incoming.head.headers["long"], long.as_str());
    assert!(matches!(incoming.inbox.next().await, Received::Message(_)));
    incoming.reset(Reason::REFUSED_STREAM);
    let reset = frames
        .read_until(|frame| frame.kind == FrameKind::RstStream)
        .await
        .unwrap();
    assert_eq!(reset.error_code(), Some(Reason::REFUSED_STREAM.into()));
    frames.send(&Frame::ping(*b"12345678")).await.unwrap();
    let pong = frames
        .read_until(|frame| frame.kind == FrameKind::Ping)
        .await
        .unwrap();
    assert_eq!(pong.payload, &b"12345678"[..]);
}
