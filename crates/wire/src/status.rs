//! Why something ended, as gRPC status: the only place that knows which code belongs to which reason.
//!
//! The reason travels in `grpc-status-details-bin` as a `google.rpc.Status` that repeats code and
//! message and adds an `ErrorInfo` of the domain `tidegate`, and a `RetryInfo` where trying again
//! can help. A status without them comes from a peer that knows no reasons: its code and message are
//! kept as [`Reason::Foreign`].

mod details;
mod headers;
mod percent;
mod table;

use tidegate_lifecycle::cause::ForeignCode;
use tidegate_lifecycle::{End, Origin, Reason};
pub use tonic::Code;

pub use self::headers::{from_http, ok, parse, trailers};
pub use self::table::{code, name, number, relay_close_code};
pub(crate) use self::table::{failure, relay_close_reason};
use crate::convert;

/// The longest message that is written or read, in bytes.
pub const MAX_MESSAGE: usize = 1024;

/// The longest name of a hop or channel that is written or read, in bytes.
pub(crate) const MAX_NAME: usize = 128;

/// The message of an end, cut to what may be written.
pub(crate) fn bounded_message(end: &End) -> &str {
    convert::bounded(&end.message, MAX_MESSAGE)
}

/// The end as a status of the gRPC library, for unary methods.
pub fn to_tonic(end: &End) -> tonic::Status {
    let details = details::encode(end);
    tonic::Status::with_details(code(end.reason), bounded_message(end), details.into())
}

/// The end that a unary call reports. One that the peer's status did not say, but our own side of
/// the call, is TRANSPORT_LOST.
pub fn from_tonic(status: &tonic::Status, unknown_origin: Origin) -> End {
    match std::error::Error::source(status) {
        Some(source) => End::new(unknown_origin, Reason::TransportLost, chain(source)),
        None => read(
            status.code(),
            status.message(),
            status.details(),
            unknown_origin,
        ),
    }
}

/// What an error says, and everything that led to it.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}

/// The end that code, message and details of a failure say.
fn read(code: Code, message: &str, details: &[u8], unknown_origin: Origin) -> End {
    let message = convert::bounded(message, MAX_MESSAGE);
    details::decode(details, code, message, unknown_origin).unwrap_or_else(|| {
        End::new(
            unknown_origin,
            Reason::Foreign(ForeignCode::new(number(code))),
            message,
        )
    })
}

#[cfg(test)]
mod tests;
