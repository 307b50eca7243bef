//! Items at every split of their bytes, in both dialects, and what is refused.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use prost::Message;
use tidegate_lifecycle::exec::{Command, Exit, ExitReason, KillScope, Output, Summary};
use tidegate_lifecycle::exec::{Kind, TerminalSize};
use tidegate_lifecycle::id::SandboxName;
use tidegate_lifecycle::limits::{MAX_FRAME, MAX_LEGACY_MESSAGE};
use tidegate_lifecycle::{Capabilities, End, Origin, Reason};

use super::*;
use crate::DecodeError;
use crate::frame::{Frame, FrameError, FrameLimit, FrameReader, RelayInit};
use crate::message;
use crate::proto::openshell as proto;

const BOTH: [Dialect; 2] = [Dialect::Client, Dialect::Relay];

fn whole(dialect: Dialect, item: Item) -> Bytes {
    let (head, payload) = encode(dialect, item);
    [head, payload].concat().into()
}

/// Reads a stream that arrives in pieces of the given size.
fn read(mut reader: ItemReader, stream: &[u8], size: usize) -> Result<Vec<Item>, FrameError> {
    let mut items = Vec::new();
    for piece in stream.chunks(size.max(1)) {
        reader.push(Bytes::copy_from_slice(piece));
        while let Some(item) = reader.next()? {
            items.push(item);
        }
    }
    assert!(reader.is_at_boundary());
    assert_eq!(reader.buffered(), 0);
    Ok(items)
}

fn reader(dialect: Dialect, direction: Direction) -> ItemReader {
    ItemReader::new(dialect, direction, FrameLimit::Strict)
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from)
}

fn time() -> impl Strategy<Value = Duration> {
    (0u64..1_000_000, 0u32..1_000_000_000).prop_map(|(secs, nanos)| Duration::new(secs, nanos))
}

fn terminal() -> impl Strategy<Value = TerminalSize> {
    (1u16.., 1u16..).prop_map(|(cols, rows)| TerminalSize { cols, rows })
}

fn start() -> impl Strategy<Value = Start> {
    let command = (
        prop::collection::vec(".{0,9}", 0..5),
        prop::option::of("/[a-z]{1,9}"),
        prop::collection::btree_map("[A-Z]{1,4}", ".{0,9}", 0..4),
        prop::option::of(terminal()),
        prop::option::of(time()),
        prop::option::of(time()),
        any::<(bool, Option<u64>, Option<u64>)>(),
    )
        .prop_map(
            |(argv, workdir, environment, terminal, timeout, kill_grace, rest)| Command {
                argv,
                workdir,
                environment: environment.into_iter().collect(),
                terminal,
                timeout,
                kill_grace,
                kill_background: rest.0,
                stdout_limit: rest.1,
                stderr_limit: rest.2,
            },
        );
    (command, "[a-z]{0,9}").prop_map(|(command, request_id)| Start {
        request_id,
        ..Start::new(command)
    })
}

fn input() -> impl Strategy<Value = Item> {
    prop_oneof![
        start().prop_map(|start| Item::Start(Box::new(start))),
        bytes().prop_map(Item::Stdin),
        Just(Item::StdinFin),
        terminal().prop_map(Item::Resize),
        any::<i32>().prop_map(Item::Signal),
        Just(Item::Empty),
    ]
}

fn scope() -> impl Strategy<Value = KillScope> {
    prop_oneof![
        Just(KillScope::None),
        Just(KillScope::Cgroup),
        Just(KillScope::Reaper)
    ]
}

fn summary() -> impl Strategy<Value = Summary> {
    any::<(u64, u64, bool, bool)>().prop_map(|(total, sent, truncated, held_open)| Summary {
        total,
        sent,
        truncated,
        held_open,
    })
}

fn exit() -> impl Strategy<Value = Exit> {
    let reason = prop_oneof![
        Just(ExitReason::Exited),
        Just(ExitReason::Signaled),
        Just(ExitReason::TimedOut),
        Just(ExitReason::Cancelled),
    ];
    let summaries = (summary(), summary());
    let signal = prop::option::of(1i32..65);
    (
        any::<(i32, u32)>(),
        reason,
        signal,
        summaries,
        time(),
        scope(),
    )
        .prop_map(
            |((code, leftover), reason, signal, (stdout, stderr), duration, scope)| Exit {
                code,
                reason,
                signal,
                stdout,
                stderr,
                duration,
                scope,
                leftover,
            },
        )
}

fn event() -> impl Strategy<Value = Item> {
    let failed = End::new(Origin::Supervisor, Reason::ExecNotFound, "no such program");
    let output = prop_oneof![Just(Output::Stdout), Just(Output::Stderr)];
    prop_oneof![
        scope().prop_map(|scope| Item::Started(Ok(scope))),
        Just(Item::Started(Err(Box::new(failed)))),
        (output, bytes(), any::<u64>(), any::<u64>()).prop_map(
            |(output, data, sequence, order)| Item::Output {
                output,
                data,
                sequence,
                order,
            }
        ),
        exit().prop_map(|exit| Item::Exit(Box::new(exit))),
        Just(Item::Empty),
    ]
}

proptest! {
    #[test]
    fn input_survives_any_split(items in prop::collection::vec(input(), 0..6), size in 1usize..70) {
        for dialect in BOTH {
            let stream: Vec<u8> = items.iter().flat_map(|it| whole(dialect, it.clone())).collect();
            let back = read(reader(dialect, Direction::Input), &stream, size);
            prop_assert_eq!(back, Ok(items.clone()));
        }
    }

    #[test]
    fn events_survive_any_split(items in prop::collection::vec(event(), 0..6), size in 1usize..70) {
        for dialect in BOTH {
            let stream: Vec<u8> = items.iter().flat_map(|it| whole(dialect, it.clone())).collect();
            let back = read(reader(dialect, Direction::Event), &stream, size);
            prop_assert_eq!(back, Ok(items.clone()));
        }
    }

    #[test]
    fn requests_survive_through_both_doors(start in start(), stdin in bytes()) {
        let sandbox = SandboxName::parse("sb").unwrap();
        let request = ExecRequest { sandbox, start: Start { stdin, ..start } };
        let once = request.clone().encode().slice(message::PREFIX_LEN..);
        prop_assert_eq!(ExecRequest::parse(&once), Ok(request.clone()));

        let mut reader = reader(Dialect::Client, Direction::Input);
        reader.push(request.clone().encode_first());
        let Ok(Some(First::Start(start))) = reader.first() else { panic!("no start") };
        prop_assert_eq!(ExecRequest::parse(&start), Ok(request));
        prop_assert!(reader.is_at_boundary());
    }

    #[test]
    fn garbage_is_read_or_refused_and_nothing_else(stream in bytes(), size in 1usize..9) {
        for dialect in BOTH {
            for direction in [Direction::Input, Direction::Event] {
                let mut reader = reader(dialect, direction);
                for piece in stream.chunks(size) {
                    reader.push(Bytes::copy_from_slice(piece));
                    while let Ok(Some(_)) = reader.next() {}
                }
            }
        }
    }
}

#[test]
fn payload_is_not_copied() {
    let data = Bytes::from(vec![7; MAX_FRAME]);
    let (_, sent) = encode(Dialect::Relay, Item::Stdin(data.clone()));
    assert_eq!(sent.as_ptr(), data.as_ptr());

    for dialect in BOTH {
        let message = whole(dialect, Item::Stdin(data.clone()));
        let within = message.as_ptr_range();
        let mut reader = reader(dialect, Direction::Input);
        reader.push(message);
        let Ok(Some(Item::Stdin(read))) = reader.next() else {
            panic!("no stdin")
        };
        assert!(within.contains(&read.as_ptr()), "{dialect:?}");
    }
}

#[test]
fn a_large_item_of_a_legacy_peer_comes_in_several() {
    let data = Bytes::from((0..200_000u32).map(|n| n as u8).collect::<Vec<_>>());
    let output = |data| Item::Output {
        output: Output::Stderr,
        data,
        sequence: 0,
        order: 0,
    };
    let inputs = (Direction::Input, Item::Stdin(data.clone()));
    for (direction, item) in [inputs, (Direction::Event, output(data.clone()))] {
        let mut reader = ItemReader::new(Dialect::Client, direction, FrameLimit::Legacy);
        reader.push(whole(Dialect::Client, item));
        let mut back = BytesMut::new();
        let mut left = data.len();
        while let Some(item) = reader.next().unwrap() {
            assert!(item.weight() <= MAX_FRAME);
            left -= item.weight();
            assert_eq!(reader.buffered(), left);
            assert_eq!(reader.is_at_boundary(), left == 0);
            match item {
                Item::Stdin(data) | Item::Output { data, .. } => back.extend_from_slice(&data),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!((back.freeze(), reader.take_oversize()), (data.clone(), 1));
    }
}

#[test]
fn the_stdin_of_a_start_follows_it() {
    let data = Bytes::from(vec![1; MAX_FRAME + 1]);
    let start = Start {
        stdin: data.clone(),
        ..Start::new(Command::default())
    };
    let pieces: Vec<Item> = Item::Start(Box::new(start.clone())).pieces().collect();
    let without = Start {
        stdin: Bytes::new(),
        ..start.clone()
    };
    let expected = [
        Item::Start(Box::new(without)),
        Item::Stdin(data.slice(..MAX_FRAME)),
        Item::Stdin(data.slice(MAX_FRAME..)),
    ];
    assert_eq!(pieces, expected);
    let stream = whole(Dialect::Relay, Item::Start(Box::new(start)));
    let items = read(reader(Dialect::Relay, Direction::Input), &stream, 9_999);
    assert_eq!(items.as_deref(), Ok(&expected[..]));
}

#[test]
fn what_is_too_large_is_refused_and_stays_refused() {
    let over = Item::Stdin(Bytes::from(vec![0; MAX_FRAME + 1]));
    let too_large = FrameError::TooLarge {
        len: MAX_FRAME + 1,
        limit: MAX_FRAME,
    };
    for dialect in BOTH {
        let mut reader = reader(dialect, Direction::Input);
        reader.push(whole(dialect, over.clone()));
        reader.push(whole(dialect, Item::StdinFin));
        assert_eq!(reader.next(), Err(too_large));
        assert_eq!(reader.next(), Err(too_large));
        assert!(!reader.is_at_boundary());
    }
    let mut reader = ItemReader::new(Dialect::Client, Direction::Input, FrameLimit::Legacy);
    reader.push(whole(
        Dialect::Client,
        Item::Stdin(Bytes::from(vec![0; MAX_LEGACY_MESSAGE])),
    ));
    assert!(matches!(reader.next(), Err(FrameError::TooLarge { .. })));
}

#[test]
fn what_does_not_belong_is_unknown() {
    let read = |dialect, direction, message: &[u8]| {
        let mut reader = reader(dialect, direction);
        reader.push(message::frame(message));
        reader.next()
    };
    let unknown = Ok(Some(Item::Unknown));
    for dialect in BOTH {
        for direction in [Direction::Input, Direction::Event] {
            // Field 300, text.
            assert_eq!(read(dialect, direction, b"\xe2\x12\x01x"), unknown);
            assert_eq!(read(dialect, direction, b""), Ok(Some(Item::Empty)));
            assert_eq!(
                read(dialect, direction, b"\x0a\x05x"),
                Err(FrameError::Malformed)
            );
        }
    }
    // Bytes on a relay that carries a command, and an event in the other direction.
    assert_eq!(
        read(Dialect::Relay, Direction::Input, b"\x12\x01x"),
        unknown
    );
    assert_eq!(
        read(Dialect::Relay, Direction::Input, b"\xca\x0c\x00"),
        unknown
    );
    assert_eq!(
        read(Dialect::Relay, Direction::Input, b"\xc2\x0c\x00"),
        Ok(Some(Item::Empty))
    );
}

#[test]
fn every_form_that_protobuf_allows_is_read() {
    let read = |direction, message: &[u8]| {
        let mut reader = reader(Dialect::Client, direction);
        reader.push(message::frame(message));
        reader.next().unwrap().unwrap()
    };
    let stdin = |data| Item::Stdin(Bytes::from_static(data));
    assert_eq!(
        read(Direction::Input, b"\x12\x82\x00ab"),
        stdin(b"ab"),
        "a padded length"
    );
    assert_eq!(
        read(Direction::Input, b"\x12\x01a\x12\x01b"),
        stdin(b"b"),
        "the last one counts"
    );
    assert_eq!(
        read(Direction::Input, b"\xf8\x12\x01\x12\x01a"),
        stdin(b"a"),
        "unknown fields are ignored"
    );
    let output = Item::Output {
        output: Output::Stdout,
        data: Bytes::from_static(b"x"),
        sequence: 1,
        order: 0,
    };
    assert_eq!(
        read(Direction::Event, b"\x0a\x06\x0a\x01x\xc0\x0c\x01"),
        output,
        "in any order"
    );
}

#[test]
fn a_bad_request_names_its_field() {
    let parse = |request: proto::ExecSandboxRequest| {
        ExecRequest::parse(&request.encode_to_vec().into()).map(|it| it.start.command)
    };
    let request = |sandbox: &str| proto::ExecSandboxRequest {
        sandbox: sandbox.to_owned(),
        ..Default::default()
    };
    let minus = Some(prost_types::Duration {
        seconds: -1,
        nanos: 0,
    });
    assert_eq!(
        parse(request("")),
        Err(DecodeError::Missing { field: "sandbox" })
    );
    let bad = |request, named| match parse(request) {
        Err(DecodeError::Bad { field, .. }) => assert_eq!(field, named),
        other => panic!("{other:?}"),
    };
    bad(request("-x"), "sandbox");
    bad(
        proto::ExecSandboxRequest {
            execution_timeout: minus,
            ..request("sb")
        },
        "execution_timeout",
    );
    bad(
        proto::ExecSandboxRequest {
            kill_grace: minus,
            ..request("sb")
        },
        "kill_grace",
    );
}

#[test]
fn sizes_beyond_a_terminal_are_the_largest() {
    let resize = proto::ExecSandboxInput {
        payload: Some(proto::exec_sandbox_input::Payload::Resize(
            proto::ExecSandboxWindowResize {
                cols: 70_000,
                rows: 0,
            },
        )),
    };
    let mut reader = reader(Dialect::Client, Direction::Input);
    reader.push(message::encode(&resize));
    let size = TerminalSize {
        cols: u16::MAX,
        rows: 24,
    };
    assert_eq!(reader.next(), Ok(Some(Item::Resize(size))));
}

#[test]
fn what_came_behind_a_relays_init_is_read() {
    let init = RelayInit {
        channel: tidegate_lifecycle::id::ChannelId::new("c"),
        session: None,
        capabilities: Capabilities::NONE,
    };
    let started = Item::Started(Ok(KillScope::Reaper));
    let stream = [init.encode(), whole(Dialect::Relay, started.clone())].concat();
    for cut in 0..=stream.len() {
        let mut frames = FrameReader::new(FrameLimit::Legacy);
        let (mut before, after) = (Bytes::copy_from_slice(&stream), cut.min(stream.len()));
        let after = before.split_off(after);
        frames.push(before);
        let mut rest = Some(after);
        let first = loop {
            match frames.next().unwrap() {
                Some(first) => break first,
                None => frames.push(rest.take().expect("an init")),
            }
        };
        assert!(matches!(first, Frame::Init(_)));
        let mut reader = ItemReader::behind(frames, Direction::Event, FrameLimit::Strict);
        reader.push(rest.unwrap_or_default());
        assert_eq!(reader.next(), Ok(Some(started.clone())), "{cut}");
        assert!(reader.is_at_boundary());
    }
}

#[test]
fn an_items_kind_has_its_weight() {
    let start = Start::new(Command {
        terminal: Some(TerminalSize::default()),
        ..Command::default()
    });
    let item = Item::Start(Box::new(start));
    assert_eq!((item.kind(), item.weight()), (Kind::Start { tty: true }, 0));
    let item = Item::Stdin(Bytes::from_static(b"abc"));
    assert_eq!((item.kind(), item.weight()), (Kind::Stdin(3), 3));
    let item = Item::Exit(Box::new(Exit::exited(7)));
    assert_eq!((item.kind(), item.weight()), (Kind::Exit(7), 0));
}

#[test]
fn secrets_are_not_printed() {
    let command = Command {
        argv: vec!["env".to_owned(), "s3cret".to_owned()],
        environment: vec![("TOKEN".to_owned(), "s3cret".to_owned())],
        ..Command::default()
    };
    let start = Start {
        stdin: Bytes::from_static(b"s3cret"),
        ..Start::new(command)
    };
    assert!(!format!("{start:?}").contains("s3cret"));
}
