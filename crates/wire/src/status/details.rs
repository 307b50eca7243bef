//! `google.rpc.Status`, `ErrorInfo` and `RetryInfo`: the parts of them that are used here.

use std::collections::BTreeMap;

use prost::Message;
use tidegate_lifecycle::cause::ForeignCode;
use tidegate_lifecycle::id::ChannelId;
use tidegate_lifecycle::{End, Origin, Reason};
use tonic::Code;

use super::{MAX_NAME, bounded_message, code, number};
use crate::{cause, convert};

/// Whose reasons these are.
const DOMAIN: &str = "tidegate";

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

const ORIGIN: &str = "origin";
const HOPS: &str = "hops";
const CHANNEL: &str = "channel_id";
const EXIT_CODE: &str = "exit_code";

/// Between the names of hops.
const SEPARATOR: char = ',';

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<prost_types::Any>,
}

#[derive(Clone, PartialEq, Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<prost_types::Duration>,
}

/// What goes into `grpc-status-details-bin`.
pub(super) fn encode(end: &End) -> Vec<u8> {
    let mut details = vec![any(ERROR_INFO, &error_info(end))];
    if let Some(delay) = end.retry_after {
        let retry_delay = Some(convert::duration(delay));
        details.push(any(RETRY_INFO, &RetryInfo { retry_delay }));
    }
    let code = i32::from(number(code(end.reason)));
    Status {
        code,
        message: bounded_message(end).to_owned(),
        details,
    }
    .encode_to_vec()
}

fn error_info(end: &End) -> ErrorInfo {
    let mut metadata = BTreeMap::from([(ORIGIN.to_owned(), end.origin.to_string())]);
    if !end.hops.is_empty() {
        let names: Vec<_> = end
            .hops
            .iter()
            .map(|hop| convert::bounded(hop.as_str(), MAX_NAME))
            .collect();
        metadata.insert(HOPS.to_owned(), names.join(&SEPARATOR.to_string()));
    }
    if let Some(channel) = &end.channel {
        let channel = convert::bounded(channel.as_str(), MAX_NAME);
        metadata.insert(CHANNEL.to_owned(), channel.to_owned());
    }
    if let Some(code) = end.exit_code {
        metadata.insert(EXIT_CODE.to_owned(), code.to_string());
    }
    ErrorInfo {
        reason: end.reason.as_str().to_owned(),
        domain: DOMAIN.to_owned(),
        metadata,
    }
}

fn any(type_url: &str, message: &impl Message) -> prost_types::Any {
    prost_types::Any {
        type_url: type_url.to_owned(),
        value: message.encode_to_vec(),
    }
}

/// The end that the details tell, if they are ours and agree with the status they came with.
///
/// A reason that is not known here, or not under this code, leaves the code; who and where is kept.
pub(super) fn decode(bytes: &[u8], code: Code, message: &str, unknown: Origin) -> Option<End> {
    let status = Status::decode(bytes).ok()?;
    if status.code != i32::from(number(code)) {
        return None;
    }
    let info: ErrorInfo = find(&status, ERROR_INFO).filter(|i: &ErrorInfo| i.domain == DOMAIN)?;
    let text = |key: &str| info.metadata.get(key).map(String::as_str);
    let retry: Option<RetryInfo> = find(&status, RETRY_INFO);
    Some(End {
        origin: text(ORIGIN).and_then(Origin::from_word).unwrap_or(unknown),
        reason: Reason::from_word(&info.reason)
            .filter(|reason| super::code(*reason) == code)
            .unwrap_or_else(|| Reason::Foreign(ForeignCode::new(number(code)))),
        message: message.to_owned(),
        hops: cause::hops(text(HOPS).unwrap_or_default().split(SEPARATOR)),
        channel: text(CHANNEL).map(|id| ChannelId::new(convert::bounded(id, MAX_NAME))),
        retry_after: retry.and_then(|retry| convert::length(retry.retry_delay)),
        exit_code: text(EXIT_CODE).and_then(|code| code.parse().ok()),
        remedy: None,
    })
}

fn find<M: Message + Default>(status: &Status, type_url: &str) -> Option<M> {
    let any = status.details.iter().find(|any| any.type_url == type_url)?;
    M::decode(any.value.as_slice()).ok()
}
