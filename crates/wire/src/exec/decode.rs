//! One message in, one item out.

use bytes::Bytes;
use prost::Message;
use tidegate_lifecycle::Origin;
use tidegate_lifecycle::exec::Output;

use super::{Dialect, Direction, Item, Start, exit, start};
use crate::cause;
use crate::message::FrameError;
use crate::proto::openshell::{
    self as proto, exec_sandbox_event::Payload as Said, exec_sandbox_input::Payload as Told,
};

/// What a message without its prefix says. Payload is a slice of it.
pub(super) fn decode(
    message: Bytes,
    dialect: Dialect,
    direction: Direction,
) -> Result<Item, FrameError> {
    let message = match dialect {
        Dialect::Client => message,
        Dialect::Relay if message.is_empty() => return Ok(Item::Empty),
        Dialect::Relay => match (
            AnyFrame::decode(message).map_err(malformed)?.payload,
            direction,
        ) {
            (Some(Carried::Input(message)), Direction::Input)
            | (Some(Carried::Event(message)), Direction::Event) => message,
            (Some(Carried::Input(_)), Direction::Event)
            | (Some(Carried::Event(_)), Direction::Input)
            | (None, _) => return Ok(Item::Unknown),
        },
    };
    if message.is_empty() {
        return Ok(Item::Empty);
    }
    match direction {
        Direction::Input => input(message),
        Direction::Event => event(message),
    }
}

/// The bytes of the start in a client's message; none if it says something else.
pub(super) fn start_of(message: Bytes) -> Result<Option<Bytes>, FrameError> {
    let input = AnyInput::decode(message).map_err(malformed)?;
    Ok(input.payload.and_then(|payload| match payload {
        AnyPayload::Start(start) => Some(start),
        AnyPayload::Stdin(_)
        | AnyPayload::Resize(_)
        | AnyPayload::HalfClose(_)
        | AnyPayload::Signal(_) => None,
    }))
}

fn input(message: Bytes) -> Result<Item, FrameError> {
    let input = proto::ExecSandboxInput::decode(message).map_err(malformed)?;
    Ok(match input.payload {
        Some(Told::Start(request)) => {
            let start = Start::decode(request).map_err(|_| FrameError::Malformed)?;
            Item::Start(Box::new(start))
        }
        Some(Told::Stdin(data)) => Item::Stdin(data),
        Some(Told::HalfClose(_)) => Item::StdinFin,
        Some(Told::Resize(to)) => Item::Resize(start::size(to.cols, to.rows)),
        Some(Told::Signal(signal)) => Item::Signal(signal.number),
        None => Item::Unknown,
    })
}

fn event(message: Bytes) -> Result<Item, FrameError> {
    let event = proto::ExecSandboxEvent::decode(message).map_err(malformed)?;
    Ok(match event.payload {
        Some(Said::Stdout(said)) => Item::Output {
            output: Output::Stdout,
            data: said.data,
            sequence: said.sequence,
            order: said.order,
        },
        Some(Said::Stderr(said)) => Item::Output {
            output: Output::Stderr,
            data: said.data,
            sequence: said.sequence,
            order: said.order,
        },
        Some(Said::Exit(said)) => Item::Exit(Box::new(exit::decode(&said))),
        Some(Said::Started(said)) => Item::Started(started(said)),
        None => Item::Unknown,
    })
}

fn started(
    said: proto::ExecSandboxStarted,
) -> Result<tidegate_lifecycle::exec::KillScope, Box<tidegate_lifecycle::End>> {
    let scope = exit::decode_scope(said.scope());
    match said.failure {
        Some(failure) => Err(Box::new(cause::read(failure, Origin::Supervisor))),
        None => Ok(scope),
    }
}

fn malformed(_: prost::DecodeError) -> FrameError {
    FrameError::Malformed
}

/// A frame of a relay. Its messages are read as bytes, which are the same on the wire.
#[derive(Clone, PartialEq, Message)]
struct AnyFrame {
    #[prost(oneof = "Carried", tags = "200, 201")]
    payload: Option<Carried>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Carried {
    #[prost(bytes = "bytes", tag = "200")]
    Input(Bytes),
    #[prost(bytes = "bytes", tag = "201")]
    Event(Bytes),
}

/// A client's message, its members as bytes.
#[derive(Clone, PartialEq, Message)]
struct AnyInput {
    #[prost(oneof = "AnyPayload", tags = "1, 2, 3, 200, 201")]
    payload: Option<AnyPayload>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum AnyPayload {
    #[prost(bytes = "bytes", tag = "1")]
    Start(Bytes),
    #[prost(bytes = "bytes", tag = "2")]
    Stdin(Bytes),
    #[prost(bytes = "bytes", tag = "3")]
    Resize(Bytes),
    #[prost(bytes = "bytes", tag = "200")]
    HalfClose(Bytes),
    #[prost(bytes = "bytes", tag = "201")]
    Signal(Bytes),
}
