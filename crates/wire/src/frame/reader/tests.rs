//! Frames at every split, canonical or not, and garbage.

use proptest::prelude::*;

use super::*;
use crate::frame::{data_header, half_close, keepalive};
use crate::message::frame as framed;
use crate::proto::openshell::{
    RelayFrame, RelayInit, StreamHalfClose, TcpForwardFrame, relay_frame, tcp_forward_frame,
};

/// Reads a stream that arrives in pieces of the given sizes, over and over.
fn read(stream: &[u8], sizes: &[usize], limit: FrameLimit) -> Result<Vec<Frame>, FrameError> {
    let mut reader = FrameReader::new(limit);
    let mut frames = Vec::new();
    let mut rest = Bytes::copy_from_slice(stream);
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        reader.push(rest.split_to(rest.len().min(*size)));
        while let Some(frame) = reader.next()? {
            frames.push(frame);
        }
    }
    assert!(reader.is_at_boundary());
    Ok(frames)
}

/// The same frames with neighbouring payload joined, since a reader may pass it on in pieces.
fn joined(frames: impl IntoIterator<Item = Frame>) -> Vec<Frame> {
    let mut all: Vec<Frame> = Vec::new();
    for frame in frames {
        match (all.last_mut(), frame) {
            (Some(Frame::Data(before)), Frame::Data(data)) => {
                *before = [&before[..], &data].concat().into();
            }
            (_, frame) => all.push(frame),
        }
    }
    all
}

fn check(stream: &[u8], expected: &[Frame]) {
    for size in 1..=stream.len() {
        assert_eq!(
            joined(read(stream, &[size], FrameLimit::Legacy).unwrap()),
            expected,
            "{size}"
        );
    }
}

fn fails(stream: &[u8], limit: FrameLimit, expected: FrameError) {
    for size in 1..=stream.len().min(40) {
        assert_eq!(read(stream, &[size], limit), Err(expected), "{size}");
    }
}

fn data(bytes: &'static [u8]) -> Frame {
    Frame::Data(Bytes::from_static(bytes))
}

#[test]
fn golden_frames() {
    check(&[0, 0, 0, 0, 5, 0x12, 3, b'a', b'b', b'c'], &[data(b"abc")]);
    check(
        &[0, 0, 0, 0, 4, 0x0a, 2, 0x0a, 0],
        &[Frame::Init(Bytes::from_static(&[0x0a, 0]))],
    );
    check(&[0, 0, 0, 0, 2, 0x0a, 0], &[Frame::Init(Bytes::new())]);
    check(&[0, 0, 0, 0, 2, 0x1a, 0], &[Frame::HalfClose]);
    check(&[0, 0, 0, 0, 2, 0x12, 0], &[data(b"")]);
    check(&[0, 0, 0, 0, 0], &[Frame::Empty]);
    check(&[0, 0, 0, 0, 2, 0x22, 0], &[Frame::Unknown]);
    check(&half_close(), &[Frame::HalfClose]);
    check(&keepalive(), &[data(b"")]);
}

#[test]
fn what_protobuf_allows_is_allowed() {
    check(
        &framed(&[0x12, 0x83, 0x00, b'a', b'b', b'c']),
        &[data(b"abc")],
    ); // padded length
    check(&framed(&[0x92, 0x00, 1, b'a']), &[data(b"a")]); // padded key
    check(&framed(&[0x12, 1, b'a', 0x20, 7]), &[data(b"a")]); // an unknown field after it
    check(&framed(&[0x20, 7, 0x12, 1, b'a']), &[data(b"a")]); // and before it
    check(&framed(&[0x12, 1, b'a', 0x12, 1, b'b']), &[data(b"b")]); // twice: the last one counts
    check(&framed(&[0x12, 1, b'a', 0x1a, 0]), &[Frame::HalfClose]);
    check(&framed(&[0x1a, 0, 0x12, 1, b'a']), &[data(b"a")]);
    check(&framed(&[0x23, 0x24]), &[Frame::Unknown]); // an unknown group
}

#[test]
fn what_it_forbids_is_malformed() {
    for body in [
        &[0x12, 4, b'a'][..],
        &[0x12],
        &[0x12, 0x80],
        &[0x10, 1],
        &[0x0a, 9],
        &[0xff],
    ] {
        fails(&framed(body), FrameLimit::Legacy, FrameError::Malformed);
    }
    fails(&[1, 0, 0, 0, 0], FrameLimit::Legacy, FrameError::Compressed);
    fails(&[7, 0, 0, 0, 0], FrameLimit::Legacy, FrameError::Malformed);
}

#[test]
fn a_frame_above_the_limit_is_refused_before_any_of_it_is_passed_on() {
    let message = |len: usize| [&data_header(len)[..], &vec![0; len]].concat();
    let too_large = |len, limit| FrameError::TooLarge { len, limit };
    assert!(read(&message(65_536), &[9_999], FrameLimit::Strict).is_ok());
    fails(
        &message(65_537)[..9],
        FrameLimit::Strict,
        too_large(65_537, 65_536),
    );
    assert!(read(&message(65_537), &[9_999], FrameLimit::Legacy).is_ok());

    let largest = 1_048_576 - 4;
    assert!(read(&message(largest), &[99_999], FrameLimit::Legacy).is_ok());
    fails(
        &message(largest + 1)[..9],
        FrameLimit::Legacy,
        too_large(1_048_577, 1_048_576),
    );
}

#[test]
fn the_limit_holds_for_payload_in_any_form() {
    let padded = [&[0x12, 0x81, 0x80, 0x84, 0x00][..], &[0; 65_537]].concat();
    let too_large = FrameError::TooLarge {
        len: 65_537,
        limit: 65_536,
    };
    assert_eq!(
        read(&framed(&padded), &[5_000], FrameLimit::Strict),
        Err(too_large)
    );
    let frames = read(&framed(&padded), &[5_000], FrameLimit::Legacy).unwrap();
    assert_eq!(frames, [Frame::Data(vec![0; 65_537].into())]);
}

#[test]
fn a_limit_set_after_init_holds_for_what_came_with_it() {
    let init = [0, 0, 0, 0, 2, 0x0a, 0];
    let mut reader = FrameReader::new(FrameLimit::Legacy);
    reader.push([&init[..], &data_header(65_537)].concat().into());
    assert_eq!(reader.next(), Ok(Some(Frame::Init(Bytes::new()))));
    reader.set_limit(FrameLimit::Strict);
    let too_large = Err(FrameError::TooLarge {
        len: 65_537,
        limit: 65_536,
    });
    assert_eq!(reader.next(), too_large);
    assert_eq!(reader.next(), too_large, "and stays refused");
}

#[test]
fn payload_is_a_slice_of_what_was_pushed() {
    let stream = Bytes::from([&data_header(100)[..], &[7; 100]].concat());
    let mut reader = FrameReader::new(FrameLimit::Strict);
    reader.push(stream.slice(..50));
    reader.push(stream.slice(50..)); // not drained in between, so copied
    reader.next().unwrap();

    let mut reader = FrameReader::new(FrameLimit::Strict);
    let mut at = data_header(100).len();
    for part in [stream.slice(..50), stream.slice(50..)] {
        reader.push(part);
        let Ok(Some(Frame::Data(piece))) = reader.next() else {
            panic!("no payload")
        };
        assert_eq!(piece.as_ptr(), stream[at..].as_ptr());
        at += piece.len();
        assert_eq!(reader.next(), Ok(None));
    }
    assert_eq!(at, stream.len());
}

#[test]
fn a_stream_that_ends_inside_a_frame_is_noticed() {
    let stream = [&data_header(3)[..], b"abc"].concat();
    for end in 1..stream.len() {
        let mut reader = FrameReader::new(FrameLimit::Strict);
        reader.push(Bytes::copy_from_slice(&stream[..end]));
        while reader.next().unwrap().is_some() {}
        assert!(!reader.is_at_boundary(), "{end}");
    }
}

/// A frame, as generated code writes it, and what must be read.
fn generated() -> impl Strategy<Value = (Vec<u8>, Frame)> {
    let payload = prop::collection::vec(any::<u8>(), 0..300);
    prop_oneof![
        payload.clone().prop_map(|data| {
            let payload = Some(tcp_forward_frame::Payload::Data(data.clone().into()));
            (
                TcpForwardFrame { payload }.encode_to_vec(),
                Frame::Data(data.into()),
            )
        }),
        payload.prop_map(|data| {
            let payload = Some(relay_frame::Payload::Data(data.clone().into()));
            (
                RelayFrame { payload }.encode_to_vec(),
                Frame::Data(data.into()),
            )
        }),
        any::<String>().prop_map(|channel_id| {
            let init = RelayInit {
                channel_id,
                ..RelayInit::default()
            };
            let own = Frame::Init(init.encode_to_vec().into());
            (
                RelayFrame {
                    payload: Some(relay_frame::Payload::Init(init)),
                }
                .encode_to_vec(),
                own,
            )
        }),
        Just((
            TcpForwardFrame {
                payload: Some(tcp_forward_frame::Payload::HalfClose(StreamHalfClose {}))
            }
            .encode_to_vec(),
            Frame::HalfClose
        )),
        Just((Vec::new(), Frame::Empty)),
        Just((vec![0x28, 1], Frame::Unknown)),
    ]
}

proptest! {
    #[test]
    fn what_generated_code_writes_is_read_at_any_split(
        frames in prop::collection::vec(generated(), 0..12),
        sizes in prop::collection::vec(1usize..400, 1..6),
    ) {
        let stream: Vec<u8> = frames.iter().flat_map(|(message, _)| framed(message)).collect();
        let read = read(&stream, &sizes, FrameLimit::Strict).unwrap();
        prop_assert_eq!(joined(read), joined(frames.into_iter().map(|(_, frame)| frame)));
    }

    #[test]
    fn any_message_is_read_as_generated_code_reads_it(
        body in prop::collection::vec(prop_oneof![0u8..40, any::<u8>()], 0..12),
        size in 1usize..20,
    ) {
        let expected = match TcpForwardFrame::decode(&body[..]).map(|frame| frame.payload) {
            Ok(Some(tcp_forward_frame::Payload::Data(data))) => Some(Frame::Data(data)),
            Ok(Some(tcp_forward_frame::Payload::HalfClose(_))) => Some(Frame::HalfClose),
            Ok(None) if body.is_empty() => Some(Frame::Empty),
            Ok(None) => Some(Frame::Unknown),
            Ok(Some(tcp_forward_frame::Payload::Init(_))) | Err(_) => None, // read later
        };
        if let Some(expected) = expected {
            let read = read(&framed(&body), &[size], FrameLimit::Legacy).unwrap();
            prop_assert_eq!(joined(read), [expected]);
        }
    }

    #[test]
    fn garbage_does_no_harm(
        stream in prop::collection::vec(prop_oneof![0u8..20, any::<u8>()], 0..200),
        sizes in prop::collection::vec(1usize..30, 1..5),
    ) {
        let mut reader = FrameReader::new(FrameLimit::Legacy);
        let mut rest = Bytes::from(stream.clone());
        let mut yielded = 0;
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            reader.push(rest.split_to(rest.len().min(*size)));
            while let Ok(Some(frame)) = reader.next() {
                yielded += match frame {
                    Frame::Init(bytes) | Frame::Data(bytes) => bytes.len(),
                    Frame::HalfClose | Frame::Empty | Frame::Unknown => 0,
                };
            }
        }
        prop_assert!(yielded <= stream.len());
    }
}

#[test]
fn what_is_gathered_of_a_message_is_told_and_a_large_one_is_counted() {
    let mut message = vec![0x12, 0x81, 0x80, 0x84, 0x00]; // 65,537, written with a byte too many
    message.resize(5 + 65_537, b'x');
    let stream = framed(&message);
    let mut reader = FrameReader::new(FrameLimit::Legacy);
    reader.push(stream.slice(..1005));
    assert_eq!(reader.next(), Ok(None));
    assert_eq!((reader.gathered(), reader.buffered()), (1000, 1000));
    reader.push(stream.slice(1005..));
    let Ok(Some(Frame::Data(data))) = reader.next() else {
        panic!("it is whole")
    };
    assert_eq!((data.len(), reader.take_oversize()), (65_537, 1));
    assert_eq!((reader.gathered(), reader.buffered()), (0, 0));

    reader.push(framed(&[0x12, 3, b'a', b'b', b'c']).slice(..8));
    assert!(matches!(reader.next(), Ok(Some(Frame::Data(_)))));
    assert_eq!(reader.gathered(), 0, "payload is passed on as it comes");
}
