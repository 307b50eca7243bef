//! The final status of a call, taken apart.

use http::HeaderMap;
use prost::Message;

/// The type of the detail that carries reason and origin.
const ERROR_INFO: &str = "google.rpc.ErrorInfo";

/// How a call ended, as its trailers tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The gRPC code.
    pub code: tonic::Code,
    /// The text for people.
    pub message: String,
    /// Our reason, for instance `TARGET_RESET`; empty if the peer gave none.
    pub reason: String,
    /// Who ended it; empty if the peer did not say.
    pub origin: String,
    /// Every other fact of the detail, sorted by name.
    pub facts: Vec<(String, String)>,
}

impl Outcome {
    /// Reads the status in trailers, or in the headers of an answer without a body.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        tonic::Status::from_header_map(headers)
            .as_ref()
            .map(Self::from)
    }

    /// Tells whether the code is OK.
    pub fn is_ok(&self) -> bool {
        self.code == tonic::Code::Ok
    }
}

impl From<&tonic::Status> for Outcome {
    fn from(status: &tonic::Status) -> Self {
        let mut info = error_info(status.details()).unwrap_or_default();
        let origin = info.metadata.remove("origin").unwrap_or_default();
        let facts = info.metadata.into_iter().collect();
        let message = status.message().to_owned();
        Self {
            code: status.code(),
            message,
            reason: info.reason,
            origin,
            facts,
        }
    }
}

fn error_info(details: &[u8]) -> Option<ErrorInfo> {
    let status = RpcStatus::decode(details).ok()?;
    let detail = status
        .details
        .into_iter()
        .find(|any| any.type_url.ends_with(ERROR_INFO))?;
    ErrorInfo::decode(detail.value.as_slice()).ok()
}

#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: std::collections::BTreeMap<String, String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_and_origin_are_found_in_the_details() {
        let metadata = [("origin", "target"), ("hops", "gw0")];
        let metadata = metadata
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        let info = ErrorInfo {
            reason: "TARGET_RESET".into(),
            metadata,
        };
        let value = info.encode_to_vec();
        let any = prost_types::Any {
            type_url: format!("type.googleapis.com/{ERROR_INFO}"),
            value,
        };
        let details = RpcStatus { details: vec![any] }.encode_to_vec();
        let status = tonic::Status::with_details(tonic::Code::Unavailable, "reset", details.into());
        let outcome = Outcome::from(&status);
        assert_eq!(
            (&*outcome.reason, &*outcome.origin),
            ("TARGET_RESET", "target")
        );
        assert_eq!(outcome.facts, [("hops".to_owned(), "gw0".to_owned())]);
    }

    #[test]
    fn a_peer_that_gives_no_details_has_no_reason() {
        let outcome = Outcome::from(&tonic::Status::not_found("no such sandbox"));
        assert_eq!(
            (outcome.code, &*outcome.reason),
            (tonic::Code::NotFound, "")
        );
        assert_eq!(Outcome::from_headers(&HeaderMap::new()), None);
    }
}
