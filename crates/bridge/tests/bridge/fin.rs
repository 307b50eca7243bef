//! How FIN looks on the wire.

use std::task::Poll;

use bytes::Bytes;
use http::HeaderMap;
use tidegate_bridge::{End as _, FrameEnd, Read, RpcKind};
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::leg::Write;
use tidegate_testkit::raw_h2::{Frame, FrameKind, Frames};
use tidegate_testkit::wait::{self, GENEROUS};
use tidegate_transport::{Buffered, Connection, Endpoint};
use tidegate_wire::frame::half_close;
use tidegate_wire::metadata;
use tokio::net::TcpListener;

use crate::common::init;

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

async fn accept(listener: &TcpListener) -> Frames {
    let (stream, _) = listener.accept().await.unwrap();
    Frames::accept(stream).await.unwrap()
}

/// A client's stream of ours.
async fn forward(url: &str) -> (Connection, FrameEnd) {
    let connection = Endpoint::parse(url).unwrap().connect().await.unwrap();
    let opened = connection.open(metadata::FORWARD_TCP, HeaderMap::new());
    let (send, head) = opened.unwrap();
    let agreed = Capabilities::STREAM;
    let (kind, total) = (RpcKind::ForwardClient, Buffered::new());
    let end = FrameEnd::opened(kind, send, head, init(agreed), Some(agreed), &total);
    (connection, end)
}

#[tokio::test]
async fn a_clients_fin_and_the_end_of_its_request_are_one_frame() {
    let (listener, url) = listen().await;
    let served = async {
        let mut frames = accept(&listener).await;
        let last = frames.read_until(|frame| frame.kind == FrameKind::Data && frame.ends_stream());
        last.await.unwrap()
    };
    let called = async {
        let (connection, mut end) = forward(&url).await;
        end.queue(Bytes::from_static(b"the last of it"));
        end.command(Write::FinFrame);
        end.command(Write::EndStream);
        let left = std::future::poll_fn(|cx| end.poll_flush(cx)).await;
        assert!(left.is_ok(), "{left:?}");
        (connection, end)
    };
    let both = async { tokio::join!(served, called) };
    let (last, _open) = wait::within(GENEROUS, "the end of the request", both).await;
    assert_eq!(last.payload, half_close());
}

/// RFC 9113, 8.1: a server that has answered may reset with NO_ERROR what it does not want to read.
#[tokio::test]
async fn an_answer_in_the_middle_of_an_upload_is_not_lost_to_the_reset_behind_it() {
    let (listener, url) = listen().await;
    let served = async {
        let mut frames = accept(&listener).await;
        let first = frames.read_until(|frame| frame.kind == FrameKind::Data);
        let stream = first.await.unwrap().stream;
        let headers = [(":status", "200"), ("content-type", "application/grpc")];
        let status = [("grpc-status", "8"), ("grpc-message", "that is enough")];
        let answer = [
            Frame::headers(stream, &headers, false),
            Frame::headers(stream, &status, true),
            Frame::reset(stream, 0),
        ];
        let answer = answer.map(|frame| frame.encode()).concat();
        frames.send_bytes(&answer).await.unwrap();
        let _ = frames.read_until(|_| false).await;
    };
    let called = async {
        let (_connection, mut end) = forward(&url).await;
        std::future::poll_fn(|cx| {
            if end.waiting() == 0 {
                end.queue(Bytes::from_static(&[7; 32 * 1024]));
            }
            // In the order in which the loss shows first.
            match end.poll_flush(cx) {
                Poll::Ready(Err((_, end))) => return Poll::Ready(end),
                Poll::Ready(Ok(())) => cx.waker().wake_by_ref(),
                Poll::Pending => {}
            }
            match end.poll_read(true, cx) {
                Poll::Ready(Read::Ended(_, end)) => Poll::Ready(end),
                Poll::Ready(_) => {
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    };
    let both = async {
        tokio::select! { end = called => end, () = served => unreachable!() }
    };
    let end = wait::within(GENEROUS, "the answer", both).await;
    assert_eq!(end.message, "that is enough");
}
