//! How FIN looks on the wire.

use bytes::Bytes;
use http::HeaderMap;
use tidegate_bridge::{End as _, FrameEnd, RpcKind};
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::leg::Write;
use tidegate_testkit::raw_h2::{FrameKind, Frames};
use tidegate_testkit::wait::{self, GENEROUS};
use tidegate_transport::{Buffered, Endpoint};
use tidegate_wire::frame::half_close;
use tidegate_wire::metadata;
use tokio::net::TcpListener;

use crate::common::init;

#[tokio::test]
async fn a_clients_fin_and_the_end_of_its_request_are_one_frame() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let served = async {
        let (stream, _) = listener.accept().await.unwrap();
        let mut frames = Frames::accept(stream).await.unwrap();
        let last = frames.read_until(|frame| frame.kind == FrameKind::Data && frame.ends_stream());
        last.await.unwrap()
    };
    let called = async {
        let connection = Endpoint::parse(&url).unwrap().connect().await.unwrap();
        let (send, head) = connection
            .open(metadata::FORWARD_TCP, HeaderMap::new())
            .unwrap();
        let agreed = Capabilities::STREAM;
        let (kind, total) = (RpcKind::ForwardClient, Buffered::new());
        let mut end = FrameEnd::opened(kind, send, head, init(agreed), Some(agreed), &total);
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
