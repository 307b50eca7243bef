//! What a supervisor says.

use bytes::Bytes;
use prost::Message;
use tidegate_lifecycle::id::{GatewayId, InstanceId, SandboxName, SessionId};
use tidegate_lifecycle::session::{FromSupervisor, Hello};
use tidegate_lifecycle::{Capabilities, Origin};

use super::relay;
use crate::decode::{DecodeError, required};
use crate::proto::openshell::{self as proto, supervisor_message::Payload};
use crate::{convert, message};

/// The version of a peer that does not say which it speaks.
const FIRST_VERSION: u32 = 1;

/// Encodes what a supervisor says as a whole message, prefix included.
pub fn encode_supervisor(said: &FromSupervisor) -> Bytes {
    message::encode(&proto::SupervisorMessage {
        payload: payload(said),
    })
}

fn payload(said: &FromSupervisor) -> Option<Payload> {
    Some(match said {
        FromSupervisor::Hello(hello) => Payload::Hello(proto::SupervisorHello {
            sandbox_id: hello.sandbox.to_string(),
            instance_id: hello.instance.to_string(),
            capabilities: hello.capabilities.names(),
            protocol_version: hello.protocol_version,
            homes: homes_on_the_wire(hello.homes),
            replaces: hello
                .replaces
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            held: hello.held.iter().map(ToString::to_string).collect(),
        }),
        FromSupervisor::Heartbeat => Payload::Heartbeat(proto::SupervisorHeartbeat {}),
        FromSupervisor::RelayOpenResult { channel, result } => {
            Payload::RelayOpenResult(relay::encode_result(channel, result))
        }
        FromSupervisor::RelayClose(close) => Payload::RelayClose(relay::encode_close(close)),
        FromSupervisor::Goodbye { deadline } => Payload::Goodbye(proto::SupervisorGoodbye {
            deadline: Some(convert::duration(*deadline)),
        }),
        FromSupervisor::Unknown => return None,
    })
}

/// Decodes what a supervisor says from a message without its prefix.
///
/// # Errors
///
/// When the bytes are no such message, or a field it needs is missing or bad; the error names it.
pub fn decode_supervisor(bytes: Bytes) -> Result<FromSupervisor, DecodeError> {
    Ok(match proto::SupervisorMessage::decode(bytes)?.payload {
        Some(Payload::Hello(hello)) => FromSupervisor::Hello(decode_hello(hello)?),
        Some(Payload::Heartbeat(_)) => FromSupervisor::Heartbeat,
        Some(Payload::RelayOpenResult(result)) => {
            let (channel, result) = relay::decode_result(result)?;
            FromSupervisor::RelayOpenResult { channel, result }
        }
        Some(Payload::RelayClose(close)) => {
            FromSupervisor::RelayClose(relay::decode_close(close, Origin::Supervisor)?)
        }
        Some(Payload::Goodbye(goodbye)) => FromSupervisor::Goodbye {
            deadline: convert::length(goodbye.deadline).unwrap_or_default(),
        },
        None => FromSupervisor::Unknown,
    })
}

fn decode_hello(hello: proto::SupervisorHello) -> Result<Hello, DecodeError> {
    let sandbox = required("hello.sandbox_id", hello.sandbox_id)?;
    Ok(Hello {
        sandbox: SandboxName::parse(&sandbox)
            .map_err(|error| DecodeError::bad("hello.sandbox_id", error))?,
        instance: InstanceId::new(hello.instance_id),
        capabilities: Capabilities::from_names(hello.capabilities),
        protocol_version: hello.protocol_version.max(FIRST_VERSION),
        homes: homes(hello.homes),
        replaces: Some(hello.replaces)
            .filter(|session| !session.is_empty())
            .map(SessionId::new),
        held: hello
            .held
            .into_iter()
            .take(usize::from(Hello::MAX_HOMES))
            .map(GatewayId::new)
            .collect(),
    })
}

/// One home is what every supervisor wants that does not say, and so it goes without saying.
fn homes_on_the_wire(homes: u8) -> u32 {
    match homes {
        0 | 1 => 0,
        more => u32::from(more),
    }
}

fn homes(wanted: u32) -> u8 {
    let wanted = u8::try_from(wanted).unwrap_or(Hello::MAX_HOMES);
    wanted.clamp(1, Hello::MAX_HOMES)
}
