//! Status as trailers.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tidegate_lifecycle::cause::ForeignCode;
use tidegate_lifecycle::{End, Origin, Reason};
use tonic::Code;

use super::{bounded_message, code, details, number, percent, read};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// Binary metadata is written without padding and read either way.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The trailers of an RPC that finished.
pub fn ok() -> HeaderMap {
    HeaderMap::from_iter([(STATUS, HeaderValue::from_static("0"))])
}

/// The trailers of an RPC that did not. They stay below 8 KiB.
pub fn trailers(end: &End) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(3);
    headers.insert(
        STATUS,
        HeaderValue::from(u16::from(number(code(end.reason)))),
    );
    headers.insert(MESSAGE, ascii(&percent::encode(bounded_message(end))));
    headers.insert(DETAILS, ascii(&BASE64.encode(details::encode(end))));
    headers
}

fn ascii(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("percent-encoding and base64 yield printable ASCII")
}

/// Reads trailers, or headers that are an RPC's only ones.
///
/// # Errors
///
/// The end that they tell; what it does not say about its origin is `unknown_origin`. Trailers
/// without a status are TRANSPORT_LOST: the RPC's end did not arrive.
pub fn parse(headers: &HeaderMap, unknown_origin: Origin) -> Result<(), End> {
    let Some(code) = headers.get(STATUS).and_then(status) else {
        let message = "the call ended without a status";
        return Err(End::new(unknown_origin, Reason::TransportLost, message));
    };
    if code == Code::Ok {
        return Ok(());
    }
    let message = headers
        .get(MESSAGE)
        .map(|value| percent::decode(value.as_bytes()));
    let details = headers
        .get(DETAILS)
        .and_then(|value| BASE64.decode(value.as_bytes()).ok());
    Err(read(
        code,
        &message.unwrap_or_default(),
        &details.unwrap_or_default(),
        unknown_origin,
    ))
}

fn status(value: &HeaderValue) -> Option<Code> {
    let number: u8 = value.to_str().ok()?.parse().ok()?;
    (number <= 16).then(|| Code::from_i32(i32::from(number)))
}

/// The end of a call that something answered which does not speak gRPC, such as a proxy.
pub fn from_http(status: StatusCode, origin: Origin) -> End {
    let code = match status {
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            Code::Unauthenticated
        }
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::Unimplemented,
        _ => Code::Unavailable,
    };
    let reason = Reason::Foreign(ForeignCode::new(number(code)));
    End::new(
        origin,
        reason,
        format!("answered with HTTP status {status}, which is not gRPC"),
    )
}
