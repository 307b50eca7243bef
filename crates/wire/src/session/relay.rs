//! Messages about one relay, which both ends send.

use tidegate_lifecycle::id::ChannelId;
use tidegate_lifecycle::session::RelayClose;
use tidegate_lifecycle::{End, Origin, Reason};

use crate::decode::{DecodeError, required};
use crate::proto::openshell as proto;
use crate::{cause, convert, status};

pub(super) fn channel(id: String) -> Result<ChannelId, DecodeError> {
    required("channel_id", id).map(ChannelId::new)
}

pub(super) fn encode_close(close: &RelayClose) -> proto::RelayClose {
    match close {
        RelayClose::Advisory { channel, text } => proto::RelayClose {
            channel_id: channel.to_string(),
            reason: convert::bounded(text, status::MAX_MESSAGE).to_owned(),
            code: proto::RelayCloseCode::Unspecified.into(),
            cause: None,
        },
        RelayClose::Abort { channel, end } => proto::RelayClose {
            channel_id: channel.to_string(),
            reason: convert::bounded(&end.to_string(), status::MAX_MESSAGE).to_owned(),
            code: status::relay_close_code(end.reason),
            cause: Some(cause::encode(end)),
        },
    }
}

/// A close is an abort as soon as it says why in a form that programs read.
pub(super) fn decode_close(
    close: proto::RelayClose,
    sender: Origin,
) -> Result<RelayClose, DecodeError> {
    let channel = channel(close.channel_id)?;
    let text = convert::bounded(&close.reason, status::MAX_MESSAGE).to_owned();
    let end = match close.cause {
        Some(cause) => cause::decode(cause, &channel, sender),
        None => match status::relay_close_reason(close.code, sender) {
            Some((origin, reason)) => End::new(origin, reason, text).on(channel.clone()),
            None => return Ok(RelayClose::Advisory { channel, text }),
        },
    };
    Ok(RelayClose::Abort { channel, end })
}

pub(super) fn encode_result(
    channel: &ChannelId,
    result: &Result<(), End>,
) -> proto::RelayOpenResult {
    let end = result.as_ref().err();
    proto::RelayOpenResult {
        channel_id: channel.to_string(),
        success: end.is_none(),
        error: end
            .map(|end| status::bounded_message(end).to_owned())
            .unwrap_or_default(),
        cause: end.map(cause::encode),
    }
}

/// A failure without a cause is a legacy supervisor's: its text is shown and never parsed.
pub(super) fn decode_result(
    result: proto::RelayOpenResult,
) -> Result<(ChannelId, Result<(), End>), DecodeError> {
    let channel = channel(result.channel_id)?;
    let outcome = match result.cause {
        _ if result.success => Ok(()),
        Some(cause) => Err(cause::decode(cause, &channel, Origin::Supervisor)),
        None => {
            let text = convert::bounded(&result.error, status::MAX_MESSAGE);
            Err(End::new(Origin::Target, Reason::TargetUnreachable, text).on(channel.clone()))
        }
    };
    Ok((channel, outcome))
}
