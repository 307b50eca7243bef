//! Messages byte by byte, by hand: those of released peers and ours.

use std::time::Duration;

use bytes::Bytes;
use tidegate_lifecycle::Capabilities;
use tidegate_lifecycle::exec::{Command, Exit, KillScope, Output, TerminalSize};

use super::*;
use crate::frame::FrameLimit;
use crate::message;

fn parse(request: &'static [u8]) -> ExecRequest {
    ExecRequest::parse(&Bytes::from_static(request)).unwrap()
}

/// What a message without its prefix says.
fn read(dialect: Dialect, direction: Direction, bytes: &[u8]) -> Item {
    let mut reader = ItemReader::new(dialect, direction, FrameLimit::Legacy);
    reader.push(message::frame(bytes));
    let item = reader.next().unwrap().expect("an item");
    assert!(reader.is_at_boundary());
    item
}

/// The item is those bytes, and those bytes are the item.
fn both(dialect: Dialect, direction: Direction, item: Item, parts: &[&[u8]]) {
    let bytes = parts.concat();
    assert_eq!(read(dialect, direction, &bytes), item);
    let (head, payload) = encode(dialect, item);
    assert_eq!([head, payload].concat(), message::frame(&bytes));
}

#[test]
fn a_request_of_0_0_113_is_read() {
    // sandbox, command, workdir, environment, timeout_seconds, stdin, tty, cols, rows
    let request = parse(
        b"\x0a\x02sb\x12\x02ls\x12\x02-l\x1a\x04/tmp\
        \x22\x06\x0a\x01A\x12\x01b\x28\x07\x32\x02hi\x38\x01\x40\x64\x48\x28",
    );
    assert_eq!(request.sandbox.as_str(), "sb");
    let start = Start {
        command: Command {
            argv: vec!["ls".to_owned(), "-l".to_owned()],
            workdir: Some("/tmp".to_owned()),
            environment: vec![("A".to_owned(), "b".to_owned())],
            terminal: Some(TerminalSize {
                cols: 100,
                rows: 40,
            }),
            timeout: Some(Duration::from_secs(7)),
            ..Command::default()
        },
        stdin: Bytes::from_static(b"hi"),
        capabilities: Capabilities::NONE,
        request_id: String::new(),
    };
    assert_eq!(request.start, start);
}

#[test]
fn a_request_of_0_1_5_is_read() {
    // sandbox, command, no_login_shell, request_id, workspace_scope, execution_timeout
    let request = parse(
        b"\x0a\x02sb\x12\x02id\x50\x01\x5a\x02r1\x62\x03\x0a\x01w\
        \xca\x06\x08\x08\x02\x10\x80\xca\xb5\xee\x01",
    );
    assert_eq!(request.start.request_id, "r1");
    let command = Command {
        argv: vec!["id".to_owned()],
        timeout: Some(Duration::from_millis(2_500)),
        ..Command::default()
    };
    assert_eq!(request.start.command, command);
}

#[test]
fn nothing_said_is_the_usual() {
    let command = |request| parse(request).start.command;
    assert_eq!(command(b"\x0a\x02sb").terminal, None);
    assert_eq!(
        command(b"\x0a\x02sb\x40\x64").terminal,
        None,
        "no tty, no size"
    );
    assert_eq!(
        command(b"\x0a\x02sb\x38\x01").terminal,
        Some(TerminalSize { cols: 80, rows: 24 })
    );
    assert_eq!(command(b"\x0a\x02sb\x28\x00").timeout, None);
    // Both are said: the finer one counts.
    assert_eq!(
        command(b"\x0a\x02sb\x28\x07\xca\x06\x02\x08\x06").timeout,
        Some(Duration::from_secs(6))
    );
    // A number that nobody has given a meaning.
    assert_eq!(command(b"\x0a\x02sb\xf8\x07\x01"), Command::default());
}

#[test]
fn what_released_peers_say() {
    use Direction::{Event, Input};
    let client = |direction, item, bytes: &[u8]| both(Dialect::Client, direction, item, &[bytes]);
    client(
        Input,
        Item::Stdin(Bytes::from_static(b"abc")),
        b"\x12\x03abc",
    );
    client(Input, Item::Stdin(Bytes::new()), b"\x12\x00");
    let size = TerminalSize {
        cols: 132,
        rows: 43,
    };
    client(Input, Item::Resize(size), b"\x1a\x05\x08\x84\x01\x10\x2b");
    let output = |output, data| Item::Output {
        output,
        data: Bytes::from_static(data),
        sequence: 0,
        order: 0,
    };
    client(
        Event,
        output(Output::Stdout, b"o\n"),
        b"\x0a\x04\x0a\x02o\n",
    );
    client(Event, output(Output::Stderr, b" "), b"\x12\x03\x0a\x01 ");
    let code = |bytes| match read(Dialect::Client, Event, bytes) {
        Item::Exit(exit) => *exit,
        other => panic!("{other:?}"),
    };
    assert_eq!(code(b"\x1a\x02\x08\x07"), Exit::exited(7));
    assert_eq!(code(b"\x1a\x00"), Exit::exited(0));
    assert_eq!(code(b"\x1a\x02\x08\x7c"), Exit::exited(124));
}

#[test]
fn what_only_we_say() {
    let (input, event) = (b"\xc2\x0c", b"\xca\x0c"); // RelayFrame 200 and 201
    let relay = |direction, item, parts: &[&[u8]]| both(Dialect::Relay, direction, item, parts);
    relay(
        Direction::Input,
        Item::Stdin(Bytes::from_static(b"abc")),
        &[input, b"\x05", b"\x12\x03abc"],
    );
    relay(
        Direction::Input,
        Item::StdinFin,
        &[input, b"\x03", b"\xc2\x0c\x00"],
    );
    relay(
        Direction::Input,
        Item::Signal(2),
        &[input, b"\x05", b"\xca\x0c\x02\x08\x02"],
    );
    relay(
        Direction::Event,
        Item::Started(Ok(KillScope::Cgroup)),
        &[event, b"\x05", b"\xc2\x0c\x02\x08\x01"],
    );
    let output = Item::Output {
        output: Output::Stderr,
        data: Bytes::from_static(b"e"),
        sequence: 3,
        order: 300,
    };
    relay(
        Direction::Event,
        output,
        &[
            event,
            b"\x0c",
            b"\x12\x0a",
            b"\xc0\x0c\x03",
            b"\xc8\x0c\xac\x02",
            b"\x0a\x01e",
        ],
    );
    relay(Direction::Input, Item::Empty, &[]);
}

#[test]
fn a_start_of_ours_is_read_by_both_dialects() {
    let command = Command {
        argv: vec!["id".to_owned()],
        timeout: Some(Duration::from_millis(1_500)),
        ..Command::default()
    };
    let start = Start {
        capabilities: Capabilities::NONE,
        ..Start::new(command)
    };
    // Whole seconds for 0.0.x, rounded up; the exact time for everybody else.
    let request: &[u8] = b"\x12\x02id\x28\x02\x50\x01\xca\x06\x08\x08\x01\x10\x80\xca\xb5\xee\x01";
    both(
        Dialect::Client,
        Direction::Input,
        Item::Start(Box::new(start)),
        &[b"\x0a\x13", request],
    );
}
