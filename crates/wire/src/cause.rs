//! An [`End`] inside a message, where there are no trailers to carry it.

use tidegate_lifecycle::cause::ForeignCode;
use tidegate_lifecycle::id::{ChannelId, HopName};
use tidegate_lifecycle::{End, Origin, Reason};

use crate::convert;
use crate::proto::openshell::Cause;
use crate::status;

/// The end without its channel, which every message with a cause names itself.
pub(crate) fn encode(end: &End) -> Cause {
    Cause {
        reason: end.reason.as_str().to_owned(),
        origin: end.origin.as_str().to_owned(),
        hops: end.hops.iter().map(ToString::to_string).collect(),
        message: status::bounded_message(end).to_owned(),
        status_code: u32::from(status::number(status::code(end.reason))),
        retry_delay: end.retry_after.map(convert::duration),
        exit_code: end.exit_code,
    }
}

/// The end of the relay `channel`.
pub(crate) fn decode(cause: Cause, channel: &ChannelId, unknown_origin: Origin) -> End {
    read(cause, unknown_origin).on(channel.clone())
}

/// The end of something without a channel. A reason that is not known here leaves its code.
pub(crate) fn read(cause: Cause, unknown_origin: Origin) -> End {
    let reason = Reason::from_word(&cause.reason)
        .unwrap_or_else(|| Reason::Foreign(ForeignCode::new(status::failure(cause.status_code))));
    End {
        origin: Origin::from_word(&cause.origin).unwrap_or(unknown_origin),
        reason,
        message: convert::bounded(&cause.message, status::MAX_MESSAGE).to_owned(),
        hops: hops(cause.hops.iter().map(String::as_str)),
        channel: None,
        retry_after: convert::length(cause.retry_delay),
        exit_code: cause.exit_code,
        remedy: None,
    }
}

/// The hops that a peer names, as far as a path may be long.
pub(crate) fn hops<'a>(names: impl Iterator<Item = &'a str>) -> Vec<HopName> {
    names
        .filter(|name| !name.is_empty())
        .take(End::MAX_HOPS)
        .map(|name| HopName::new(convert::bounded(name, status::MAX_NAME)))
        .collect()
}
