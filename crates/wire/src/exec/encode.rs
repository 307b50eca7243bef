//! One item in, one message out; payload is not copied.

use bytes::Bytes;
use tidegate_lifecycle::End;
use tidegate_lifecycle::exec::{KillScope, Output};

use super::{Dialect, Item, exit};
use crate::proto::openshell::{
    self as proto, exec_sandbox_event::Payload as Said, exec_sandbox_input::Payload as Told,
    relay_frame,
};
use crate::{cause, frame, message};

/// Field 200, length-delimited: `RelayFrame.exec_input`.
const EXEC_INPUT: u32 = 200 << 3 | 2;
/// Field 201, length-delimited: `RelayFrame.exec_event`.
const EXEC_EVENT: u32 = 201 << 3 | 2;
/// Field 2, length-delimited: `ExecSandboxInput.stdin`.
const STDIN: u32 = 2 << 3 | 2;
/// Field 1, length-delimited: `ExecSandboxEvent.stdout`.
const STDOUT: u32 = 1 << 3 | 2;
/// Field 2, length-delimited: `ExecSandboxEvent.stderr`.
const STDERR: u32 = 2 << 3 | 2;
/// Field 1, length-delimited: the bytes of either output.
const DATA: u32 = 1 << 3 | 2;
/// Field 200, a number: which item of its output it is.
const SEQUENCE: u32 = 200 << 3;
/// Field 201, a number: which item of both outputs it is.
const ORDER: u32 = 201 << 3;

/// The whole message that says `item`, in two segments: what precedes the payload, and the payload,
/// which is the item's own. A start says nothing about its sandbox.
///
/// An item above 64 KiB makes a message that strict peers refuse: see [`Item::pieces`].
///
/// # Panics
///
/// When the message has 4 GiB or more.
pub fn encode(dialect: Dialect, item: Item) -> (Bytes, Bytes) {
    match item {
        Item::Stdin(data) => (stdin(dialect, data.len()), data),
        Item::Output {
            output,
            data,
            sequence,
            order,
        } => {
            let mut head = Head::before(data.len());
            head.member(DATA);
            head.number(ORDER, order);
            head.number(SEQUENCE, sequence);
            head.member(match output {
                Output::Stdout => STDOUT,
                Output::Stderr => STDERR,
            });
            if dialect == Dialect::Relay {
                head.member(EXEC_EVENT);
            }
            (head.finish(), data)
        }
        Item::Start(start) => told(dialect, Told::Start(start.encode(String::new()))),
        Item::StdinFin => told(dialect, Told::HalfClose(proto::StreamHalfClose {})),
        Item::Resize(size) => told(
            dialect,
            Told::Resize(proto::ExecSandboxWindowResize {
                cols: size.cols.into(),
                rows: size.rows.into(),
            }),
        ),
        Item::Signal(number) => told(dialect, Told::Signal(proto::ExecSandboxSignal { number })),
        Item::Started(outcome) => said(dialect, Said::Started(started(outcome))),
        Item::Exit(exit) => said(dialect, Said::Exit(exit::encode(&exit))),
        // Nothing is known that could be said.
        Item::Empty | Item::Unknown => (message::frame(&[]), Bytes::new()),
    }
}

fn stdin(dialect: Dialect, len: usize) -> Bytes {
    match dialect {
        Dialect::Client => frame::data_header(len).into(),
        Dialect::Relay => {
            let mut head = Head::before(len);
            head.member(STDIN);
            head.member(EXEC_INPUT);
            head.finish()
        }
    }
}

fn told(dialect: Dialect, payload: Told) -> (Bytes, Bytes) {
    let input = proto::ExecSandboxInput {
        payload: Some(payload),
    };
    let whole = match dialect {
        Dialect::Client => message::encode(&input),
        Dialect::Relay => relayed(relay_frame::Payload::ExecInput(input)),
    };
    (whole, Bytes::new())
}

fn said(dialect: Dialect, payload: Said) -> (Bytes, Bytes) {
    let event = proto::ExecSandboxEvent {
        payload: Some(payload),
    };
    let whole = match dialect {
        Dialect::Client => message::encode(&event),
        Dialect::Relay => relayed(relay_frame::Payload::ExecEvent(event)),
    };
    (whole, Bytes::new())
}

fn relayed(payload: relay_frame::Payload) -> Bytes {
    message::encode(&proto::RelayFrame {
        payload: Some(payload),
    })
}

fn started(outcome: Result<KillScope, Box<End>>) -> proto::ExecSandboxStarted {
    match outcome {
        Ok(scope) => proto::ExecSandboxStarted {
            scope: exit::encode_scope(scope),
            failure: None,
        },
        Err(end) => proto::ExecSandboxStarted {
            scope: exit::encode_scope(KillScope::None),
            failure: Some(cause::encode(&end)),
        },
    }
}

/// What precedes a payload, written from the payload outwards.
struct Head {
    bytes: [u8; Self::CAPACITY],
    /// Where what is written begins.
    at: usize,
    payload: usize,
}

impl Head {
    /// The prefix, four members and two numbers, each with a key of two bytes, are never longer.
    const CAPACITY: usize = message::PREFIX_LEN + 3 * (2 + 5) + 2 * (2 + 10);

    const fn before(payload: usize) -> Self {
        Self {
            bytes: [0; Self::CAPACITY],
            at: Self::CAPACITY,
            payload,
        }
    }

    /// Everything so far becomes the content of a member.
    fn member(&mut self, key: u32) {
        self.varint(self.len() as u64);
        self.varint(u64::from(key));
    }

    /// A number in front of everything so far; 0 is not written.
    fn number(&mut self, key: u32, value: u64) {
        if value > 0 {
            self.varint(value);
            self.varint(u64::from(key));
        }
    }

    fn finish(mut self) -> Bytes {
        let len = u32::try_from(self.len()).expect("a message fits in memory many times over");
        self.put(&len.to_be_bytes());
        self.put(&[0]);
        Bytes::copy_from_slice(&self.bytes[self.at..])
    }

    const fn len(&self) -> usize {
        Self::CAPACITY - self.at + self.payload
    }

    fn varint(&mut self, mut value: u64) {
        let mut bytes = [0; 10];
        let mut len = 0;
        loop {
            let more = value >= 0x80;
            bytes[len] = (value & 0x7f) as u8 | u8::from(more) << 7;
            value >>= 7;
            len += 1;
            if !more {
                break;
            }
        }
        self.put(&bytes[..len]);
    }

    fn put(&mut self, bytes: &[u8]) {
        let to = self.at;
        self.at -= bytes.len();
        self.bytes[self.at..to].copy_from_slice(bytes);
    }
}
