//! Paths, header names, and what is in the headers.

mod timeout;

use std::sync::OnceLock;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate_lifecycle::id::{GatewayId, SessionId, StreamId};
use tidegate_lifecycle::{Capabilities, Capability};

pub use self::timeout::{TIMEOUT, set_timeout, timeout};

/// The path of the RPC that carries one byte stream between a client and a target.
pub const FORWARD_TCP: &str = "/openshell.v1.OpenShell/ForwardTcp";
/// The path of the RPC that runs a command whose input is known.
pub const EXEC_SANDBOX: &str = "/openshell.v1.OpenShell/ExecSandbox";
/// The path of the RPC that runs a command and talks with it.
pub const EXEC_SANDBOX_INTERACTIVE: &str = "/openshell.v1.OpenShell/ExecSandboxInteractive";
/// The path of the RPC that is a supervisor's control stream.
pub const CONNECT_SUPERVISOR: &str = "/openshell.v1.OpenShell/ConnectSupervisor";
/// The path of the RPC that carries one relay between a gateway and a supervisor.
pub const RELAY_STREAM: &str = "/openshell.v1.OpenShell/RelayStream";
/// The path of the RPC that carries one stream between two gateways.
pub const PEER_RELAY: &str = "/openshell.v1.OpenShell/PeerRelay";

/// Response: what the hop agreed on.
pub const CAPABILITIES: HeaderName = HeaderName::from_static("tidegate-capabilities");
/// Response: what every hop of the path agreed on.
pub const PATH_CAPABILITIES: HeaderName = HeaderName::from_static("tidegate-path-capabilities");
/// Response: the stream's id, as an operator sees it.
pub const STREAM_ID: HeaderName = HeaderName::from_static("tidegate-stream-id");
/// Response: the id of the session that serves the stream.
pub const SESSION_ID: HeaderName = HeaderName::from_static("tidegate-session-id");
/// Request of PeerRelay: the gateway that asks, as its first message names it.
pub const PEER_REPLICA: HeaderName = HeaderName::from_static("x-openshell-peer-replica");
/// Response of PeerRelay: the owner writes FIN as a frame. What peers of the proposed revision say.
pub const PEER_HALF_CLOSE: HeaderName = HeaderName::from_static("openshell-stream-half-close");
/// Request: the trace that a call belongs to, and what goes with it.
pub const TRACE: [HeaderName; 2] = [
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
/// Request: which thread of the gateway should serve the connection.
pub const LANE: HeaderName = HeaderName::from_static("tidegate-lane");

/// Writes a set of capabilities under `name`.
pub fn set_capabilities(headers: &mut HeaderMap, name: HeaderName, set: Capabilities) {
    /// Every stream says two sets, and there are few: each is put into words once.
    static WORDS: [OnceLock<HeaderValue>; Capabilities::COUNT] =
        [const { OnceLock::new() }; Capabilities::COUNT];
    let words = WORDS[set.index()].get_or_init(|| {
        HeaderValue::try_from(set.names().join(",")).unwrap_or(HeaderValue::from_static(""))
    });
    headers.insert(name, words.clone());
}

/// Reads the set of capabilities under `name`; the empty one if there is none.
pub fn capabilities(headers: &HeaderMap, name: &HeaderName) -> Capabilities {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    Capabilities::from_names(values.flat_map(|value| value.split(',')))
}

/// Writes a stream's id.
pub fn set_stream_id(headers: &mut HeaderMap, id: &StreamId) {
    set_text(headers, STREAM_ID, id.as_str());
}

/// Reads a stream's id.
pub fn stream_id(headers: &HeaderMap) -> Option<StreamId> {
    text(headers, &STREAM_ID).map(StreamId::new)
}

/// Writes a session's id.
pub fn set_session_id(headers: &mut HeaderMap, id: &SessionId) {
    set_text(headers, SESSION_ID, id.as_str());
}

/// Reads a session's id.
pub fn session_id(headers: &HeaderMap) -> Option<SessionId> {
    text(headers, &SESSION_ID).map(SessionId::new)
}

/// Writes the gateway that asks a peer.
pub fn set_peer_replica(headers: &mut HeaderMap, id: &GatewayId) {
    set_text(headers, PEER_REPLICA, id.as_str());
}

/// Reads the gateway that asks a peer.
pub fn peer_replica(headers: &HeaderMap) -> Option<GatewayId> {
    text(headers, &PEER_REPLICA).map(GatewayId::new)
}

/// Says, in words of the proposed revision, that FIN is a frame.
pub fn set_peer_half_close(headers: &mut HeaderMap) {
    headers.insert(PEER_HALF_CLOSE, HeaderValue::from_static("v1"));
}

/// Reads what the owner of a session agreed on: in our words, or in those of the proposed revision.
pub fn peer_capabilities(headers: &HeaderMap) -> Capabilities {
    if headers.contains_key(CAPABILITIES) {
        capabilities(headers, &CAPABILITIES)
    } else if text(headers, &PEER_HALF_CLOSE) == Some("v1") {
        Capabilities::of([Capability::StreamHalfClose])
    } else {
        Capabilities::NONE
    }
}

/// Copies what says to which trace a call belongs.
pub fn pass_trace(from: &HeaderMap, to: &mut HeaderMap) {
    for name in TRACE {
        if let Some(value) = from.get(&name) {
            to.insert(name, value.clone());
        }
    }
}

/// Writes a lane.
pub fn set_lane(headers: &mut HeaderMap, lane: u32) {
    headers.insert(LANE, HeaderValue::from(lane));
}

/// Reads a lane.
pub fn lane(headers: &HeaderMap) -> Option<u32> {
    text(headers, &LANE)?.parse().ok()
}

/// Writes a bearer token, marked so that it is neither logged nor indexed. One that no header can
/// hold is left out.
pub fn set_bearer(headers: &mut HeaderMap, token: &str) {
    if let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}")) {
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
}

/// Reads a bearer token.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, &AUTHORIZATION)?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Writes text; what no header can hold is left out.
fn set_text(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers
        .get(name)?
        .to_str()
        .ok()
        .map(str::trim)
        .filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_survive_and_unknown_ones_are_ignored() {
        let mut headers = HeaderMap::new();
        assert_eq!(capabilities(&headers, &CAPABILITIES), Capabilities::NONE);
        set_capabilities(&mut headers, CAPABILITIES, Capabilities::STREAM);
        assert_eq!(capabilities(&headers, &CAPABILITIES), Capabilities::STREAM);
        assert_eq!(
            capabilities(&headers, &PATH_CAPABILITIES),
            Capabilities::NONE
        );

        headers.insert(
            CAPABILITIES,
            HeaderValue::from_static("x-v1, frame-limit-v1"),
        );
        headers.append(CAPABILITIES, HeaderValue::from_static("relay-abort-v1"));
        let names = capabilities(&headers, &CAPABILITIES).names();
        assert_eq!(names, ["relay-abort-v1", "frame-limit-v1"]);
    }

    #[test]
    fn ids_and_lanes_survive() {
        let mut headers = HeaderMap::new();
        assert_eq!(
            (stream_id(&headers), session_id(&headers), lane(&headers)),
            (None, None, None)
        );
        set_stream_id(&mut headers, &StreamId::new("s-1"));
        set_session_id(&mut headers, &SessionId::new("x-1"));
        set_lane(&mut headers, 7);
        assert_eq!(stream_id(&headers), Some(StreamId::new("s-1")));
        assert_eq!(session_id(&headers), Some(SessionId::new("x-1")));
        assert_eq!(lane(&headers), Some(7));
    }

    #[test]
    fn an_owner_says_what_it_agreed_on_in_either_revisions_words() {
        let mut headers = HeaderMap::new();
        assert_eq!(peer_capabilities(&headers), Capabilities::NONE);
        set_peer_half_close(&mut headers);
        let proposed = Capabilities::of([Capability::StreamHalfClose]);
        assert_eq!(peer_capabilities(&headers), proposed);
        set_capabilities(&mut headers, CAPABILITIES, Capabilities::STREAM);
        assert_eq!(peer_capabilities(&headers), Capabilities::STREAM);
        headers.clear();
        headers.insert(PEER_HALF_CLOSE, HeaderValue::from_static("v2"));
        assert_eq!(peer_capabilities(&headers), Capabilities::NONE);
        set_peer_replica(&mut headers, &GatewayId::new("gw1"));
        assert_eq!(peer_replica(&headers), Some(GatewayId::new("gw1")));
    }

    #[test]
    fn only_what_names_the_trace_is_passed_on() {
        let mut from = HeaderMap::new();
        from.insert(&TRACE[0], HeaderValue::from_static("00-1-2-01"));
        from.insert("x-other", HeaderValue::from_static("y"));
        let mut to = HeaderMap::new();
        pass_trace(&from, &mut to);
        assert_eq!(to.len(), 1);
        assert_eq!(to[&TRACE[0]], "00-1-2-01");
    }

    #[test]
    fn a_bearer_token_is_read_whatever_the_case_and_never_printed() {
        let mut headers = HeaderMap::new();
        set_bearer(&mut headers, "s3cret");
        assert_eq!(bearer(&headers), Some("s3cret"));
        assert!(!format!("{headers:?}").contains("s3cret"));
        for (value, expected) in [
            ("bearer  x", Some("x")),
            ("Basic x", None),
            ("Bearer ", None),
        ] {
            headers.insert(AUTHORIZATION, HeaderValue::from_static(value));
            assert_eq!(bearer(&headers), expected, "{value}");
        }
    }
}
