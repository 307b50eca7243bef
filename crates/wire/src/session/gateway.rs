//! What a gateway says.

use std::time::Duration;

use bytes::Bytes;
use prost::Message;
use tidegate_lifecycle::id::{Generation, SessionId};
use tidegate_lifecycle::limits::HEARTBEAT_INTERVAL;
use tidegate_lifecycle::session::{Accepted, FromGateway, RelayOpen};
use tidegate_lifecycle::{Capabilities, Origin, Target};

use super::relay;
use crate::decode::{DecodeError, required};
use crate::proto::openshell::{self as proto, gateway_message::Payload, relay_open};
use crate::{convert, message, status};

/// Addresses of gateways that are kept of one message.
const MAX_PLACES: usize = 64;
/// The longest of them, in bytes.
const MAX_PLACE: usize = 512;

/// Encodes what a gateway says as a whole message, prefix included.
pub fn encode_gateway(said: &FromGateway) -> Bytes {
    message::encode(&proto::GatewayMessage {
        payload: payload(said),
    })
}

fn payload(said: &FromGateway) -> Option<Payload> {
    Some(match said {
        FromGateway::Accepted(accepted) => Payload::SessionAccepted(encode_accepted(accepted)),
        FromGateway::Rejected { reason } => Payload::SessionRejected(proto::SessionRejected {
            reason: convert::bounded(reason, status::MAX_MESSAGE).to_owned(),
        }),
        FromGateway::Heartbeat => Payload::Heartbeat(proto::GatewayHeartbeat {}),
        FromGateway::RelayOpen(open) => Payload::RelayOpen(encode_open(open)),
        FromGateway::RelayClose(close) => Payload::RelayClose(relay::encode_close(close)),
        FromGateway::SessionDrain {
            deadline,
            alternatives,
        } => Payload::SessionDrain(proto::SessionDrain {
            deadline: Some(convert::duration(*deadline)),
            alternatives: alternatives.clone(),
        }),
        FromGateway::Unknown => return None,
    })
}

fn encode_accepted(accepted: &Accepted) -> proto::SessionAccepted {
    let interval = accepted.heartbeat_interval;
    proto::SessionAccepted {
        session_id: accepted.session.to_string(),
        heartbeat_interval_secs: convert::whole_seconds(interval),
        heartbeat_interval: Some(convert::duration(interval)),
        capabilities: accepted.capabilities.names(),
        gateway_id: accepted.gateway.clone(),
        generation: accepted.generation.value(),
        gateways: accepted.gateways.clone(),
        public_url: accepted.public_url.clone().unwrap_or_default(),
    }
}

fn encode_open(open: &RelayOpen) -> proto::RelayOpen {
    let target = match &open.target {
        Target::Ssh => relay_open::Target::Ssh(proto::SshRelayTarget {}),
        Target::Tcp { host, port } => relay_open::Target::Tcp(proto::TcpRelayTarget {
            host: host.clone(),
            port: u32::from(*port),
        }),
        Target::Exec => relay_open::Target::Exec(proto::ExecRelayTarget {}),
    };
    proto::RelayOpen {
        channel_id: open.channel.to_string(),
        target: Some(target),
        service_id: String::new(),
        dial_timeout: open.dial_timeout.map(convert::duration),
        lane: open.lane,
    }
}

/// Decodes what a gateway says from a message without its prefix.
///
/// # Errors
///
/// When the bytes are no such message, or a field it needs is missing or bad; the error names it.
pub fn decode_gateway(bytes: Bytes) -> Result<FromGateway, DecodeError> {
    Ok(match proto::GatewayMessage::decode(bytes)?.payload {
        Some(Payload::SessionAccepted(accepted)) => {
            FromGateway::Accepted(decode_accepted(accepted)?)
        }
        Some(Payload::SessionRejected(rejected)) => FromGateway::Rejected {
            reason: convert::bounded(&rejected.reason, status::MAX_MESSAGE).to_owned(),
        },
        Some(Payload::Heartbeat(_)) => FromGateway::Heartbeat,
        Some(Payload::RelayOpen(open)) => FromGateway::RelayOpen(decode_open(open)?),
        Some(Payload::RelayClose(close)) => {
            FromGateway::RelayClose(relay::decode_close(close, Origin::Gateway)?)
        }
        Some(Payload::SessionDrain(drain)) => FromGateway::SessionDrain {
            deadline: convert::length(drain.deadline).unwrap_or_default(),
            alternatives: places(drain.alternatives),
        },
        None => FromGateway::Unknown,
    })
}

fn decode_accepted(accepted: proto::SessionAccepted) -> Result<Accepted, DecodeError> {
    let seconds = Duration::from_secs(u64::from(accepted.heartbeat_interval_secs));
    let interval = convert::length(accepted.heartbeat_interval).unwrap_or(seconds);
    Ok(Accepted {
        session: SessionId::new(required(
            "session_accepted.session_id",
            accepted.session_id,
        )?),
        generation: Generation::new(accepted.generation),
        heartbeat_interval: if interval.is_zero() {
            HEARTBEAT_INTERVAL
        } else {
            interval
        },
        capabilities: Capabilities::from_names(accepted.capabilities),
        gateway: accepted.gateway_id,
        gateways: places(accepted.gateways),
        public_url: places(vec![accepted.public_url]).pop(),
    })
}

/// As many addresses as are worth knowing, and none that is no address anyway.
fn places(urls: Vec<String>) -> Vec<String> {
    let fits = |url: &String| !url.is_empty() && url.len() <= MAX_PLACE;
    urls.into_iter().filter(fits).take(MAX_PLACES).collect()
}

fn decode_open(open: proto::RelayOpen) -> Result<RelayOpen, DecodeError> {
    Ok(RelayOpen {
        channel: relay::channel(open.channel_id)?,
        target: match open.target {
            Some(relay_open::Target::Tcp(tcp)) => convert::tcp_target(&tcp)?,
            Some(relay_open::Target::Exec(_)) => Target::Exec,
            Some(relay_open::Target::Ssh(_)) | None => Target::Ssh,
        },
        dial_timeout: convert::length(open.dial_timeout),
        lane: open.lane,
    })
}
