//! A gateway made of constants, called through the client and with bytes of either dialect.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use tidegate_lifecycle::id::{GatewayId, Generation, InstanceId, SandboxName, SessionId, StreamId};
use tidegate_lifecycle::{Capabilities, End, Origin, Reason};
use tonic::Code;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::service::Routes;

use super::*;
use crate::message::{PREFIX_LEN, frame};
use crate::status;

struct Constants;

fn name(text: &str) -> SandboxName {
    SandboxName::parse(text).unwrap()
}

fn when() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_000)
}

fn sandbox(text: &str) -> Sandbox {
    Sandbox {
        name: name(text),
        phase: Phase::Ready,
        homes: vec![GatewayId::new("gw0")],
        sessions: 1,
        instance: Some(InstanceId::new("i")),
        created: Some(when()),
        since: Some(when() + Duration::from_secs(5)),
    }
}

fn session(n: usize) -> Session {
    Session {
        sandbox: name("sb"),
        session: SessionId::new(format!("x{n:05}")),
        instance: InstanceId::new("i"),
        gateway: GatewayId::new("gw0"),
        generation: Generation::new(7),
        state: "live".to_owned(),
        since: Some(when()),
        capabilities: Capabilities::SESSION,
        streams: 3,
    }
}

fn stream() -> Stream {
    Stream {
        id: StreamId::new("s1"),
        sandbox: name("sb"),
        kind: "forward".to_owned(),
        target: "localhost:80".to_owned(),
        state: "open".to_owned(),
        path: vec![GatewayId::new("gw0")],
        since: Some(when()),
        bytes_up: 1,
        bytes_down: 2,
        user: String::new(),
    }
}

fn token() -> SshSession {
    SshSession {
        sandbox: name("sb"),
        token: "t0ken".to_owned(),
        gateway_host: "gw".to_owned(),
        gateway_port: 7070,
        gateway_scheme: "https".to_owned(),
        expires: Some(when()),
    }
}

fn not_found() -> End {
    End::new(Origin::Gateway, Reason::SandboxNotFound, "nobody knows it")
}

#[tonic::async_trait]
impl GatewayApi for Constants {
    async fn health(&self) -> Health {
        Health {
            status: ServiceStatus::Degraded,
            version: "1.2".to_owned(),
        }
    }

    async fn gateway_info(&self, _: &Caller) -> Result<GatewayInfo, End> {
        let (status, version) = (ServiceStatus::Healthy, "1.2".to_owned());
        Ok(GatewayInfo {
            status,
            version,
            gateway: GatewayId::new("gw0"),
        })
    }

    async fn current_user(&self, caller: &Caller) -> Result<User, End> {
        let subject = caller.token().unwrap_or_default().to_owned();
        Ok(User {
            subject,
            roles: vec!["r".to_owned()],
            ..User::default()
        })
    }

    async fn sandbox(&self, _: &Caller, name: &SandboxName) -> Result<Sandbox, End> {
        if name.as_str() == "sb" {
            Ok(sandbox("sb"))
        } else {
            Err(not_found())
        }
    }

    async fn sandboxes(&self, _: &Caller) -> Result<Vec<Sandbox>, End> {
        Ok(["c", "a", "b"].map(sandbox).into())
    }

    async fn delete_sandbox(&self, _: &Caller, name: &SandboxName) -> Result<Deletion, End> {
        if name.as_str() == "slow" {
            std::future::pending::<()>().await;
        }
        Ok(if name.as_str() == "sb" {
            Deletion::Done
        } else {
            Deletion::AlreadyAbsent
        })
    }

    async fn create_ssh_session(&self, _: &Caller, _: &SandboxName) -> Result<SshSession, End> {
        Ok(token())
    }

    async fn revoke_ssh_session(&self, _: &Caller, token: &str) -> Result<Deletion, End> {
        Ok(if token == "t0ken" {
            Deletion::Done
        } else {
            Deletion::AlreadyAbsent
        })
    }

    async fn sessions(&self, _: &Caller, _: Option<&SandboxName>) -> Result<Vec<Session>, End> {
        Ok((0..page::MAX_ITEMS + 1).rev().map(session).collect())
    }

    async fn streams(&self, _: &Caller, only: Option<&SandboxName>) -> Result<Vec<Stream>, End> {
        Ok(if only.is_some() {
            vec![]
        } else {
            vec![stream()]
        })
    }

    async fn close_stream(&self, _: &Caller, id: &StreamId) -> Result<(), End> {
        if id.as_str() == "s1" {
            Ok(())
        } else {
            Err(not_found())
        }
    }

    async fn close_session(&self, _: &Caller, _: &SandboxName) -> Result<Vec<SessionId>, End> {
        Ok(vec![SessionId::new("x1")])
    }
}

async fn service() -> Routes {
    routes(Arc::new(Constants)).await.0
}

async fn client() -> Client<Routes> {
    Client::with_uri(service().await, "http://gateway".parse().unwrap())
}

/// Calls with the bytes of a message; the bytes of the answer's message, or the status.
async fn raw(path: &str, message: &[u8]) -> Result<Bytes, End> {
    answer(request(path, message)).await
}

fn request(path: &str, message: &[u8]) -> Request<Body> {
    Request::post(format!("http://gateway{path}"))
        .header("content-type", "application/grpc")
        .body(Body::new(Full::new(frame(message))))
        .unwrap()
}

async fn answer(request: Request<Body>) -> Result<Bytes, End> {
    let (head, body) = service().await.call(request).await.unwrap().into_parts();
    if head.headers.contains_key("grpc-status") {
        status::parse(&head.headers, Origin::Gateway)?;
    }
    let body = body.collect().await.unwrap();
    status::parse(body.trailers().unwrap(), Origin::Gateway)?;
    Ok(body.to_bytes().slice(PREFIX_LEN..))
}

async fn open_shell(method: &str, message: &[u8]) -> Result<Bytes, End> {
    raw(&format!("/openshell.v1.OpenShell/{method}"), message).await
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn every_method_says_through_the_client_what_the_gateway_said() {
    let client = client().await.with_token("jane");
    let health = Health {
        status: ServiceStatus::Degraded,
        version: "1.2".to_owned(),
    };
    assert_eq!(client.health().await, Ok(health));
    assert_eq!(
        client.gateway_info().await.unwrap().gateway,
        GatewayId::new("gw0")
    );
    assert_eq!(client.current_user().await.unwrap().subject, "jane");
    assert_eq!(client.sandbox(&name("sb")).await, Ok(sandbox("sb")));
    assert_eq!(client.sandbox(&name("no")).await, Err(not_found()));
    assert_eq!(
        client.sandboxes().await,
        Ok(["a", "b", "c"].map(sandbox).into())
    );
    assert_eq!(client.delete_sandbox(&name("sb")).await, Ok(Deletion::Done));
    assert_eq!(
        client.delete_sandbox(&name("no")).await,
        Ok(Deletion::AlreadyAbsent)
    );
    assert_eq!(client.create_ssh_session(&name("sb")).await, Ok(token()));
    assert_eq!(client.revoke_ssh_session("t0ken").await, Ok(Deletion::Done));
    assert_eq!(
        client.revoke_ssh_session("other").await,
        Ok(Deletion::AlreadyAbsent)
    );
    assert_eq!(client.streams(None).await, Ok(vec![stream()]));
    assert_eq!(client.streams(Some(&name("sb"))).await, Ok(vec![]));
    assert_eq!(client.close_stream(&StreamId::new("s1")).await, Ok(()));
    assert_eq!(
        client.close_stream(&StreamId::new("s2")).await,
        Err(not_found())
    );
    assert_eq!(
        client.close_session(&name("sb")).await,
        Ok(vec![SessionId::new("x1")])
    );
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_callers_deadline() {
    let mut slow = request("/openshell.v1.OpenShell/DeleteSandbox", b"\x0a\x04slow");
    let limit = "50m".parse().unwrap();
    slow.headers_mut().insert("grpc-timeout", limit);
    let in_time = tokio::time::timeout(Duration::from_secs(30), answer(slow)).await;
    let end = in_time.expect("an answer").unwrap_err();
    assert_eq!(
        (end.origin, end.reason),
        (Origin::Gateway, Reason::OperationTimeout)
    );
}

#[tokio::test]
async fn a_list_of_many_pages_is_whole() {
    let sessions = client().await.sessions(None).await.unwrap();
    assert_eq!(
        sessions,
        (0..page::MAX_ITEMS + 1).map(session).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_sandbox_is_found_in_either_dialect_with_both_times() {
    let old = open_shell("GetSandbox", b"\x0a\x02sb\x12\x07default")
        .await
        .unwrap();
    let new = open_shell("GetSandbox", b"\x0a\x02sb\x12\x09\x0a\x07default")
        .await
        .unwrap();
    let all = open_shell("GetSandbox", b"\x0a\x02sb\x12\x02\x12\x00")
        .await
        .unwrap();
    assert!(old == new && old == all);
    // metadata { id "sb", name "sb", created_at_ms 1000000, workspace, created_time 1000 s }
    let metadata =
        b"\x0a\x1b\x0a\x02sb\x12\x02sb\x18\xc0\x84\x3d\x3a\x07default\xba\x06\x03\x08\xe8\x07";
    assert!(contains(&old, metadata), "{old:?}");
}

#[tokio::test]
async fn sandboxes_are_listed_in_either_dialect() {
    let names = |bytes: &Bytes| {
        ["a", "b", "c"].map(|name| contains(bytes, &[b"\x0a\x01", name.as_bytes()].concat()))
    };
    let check = async |message: &'static [u8], expected| {
        let listed = open_shell("ListSandboxes", message).await.unwrap();
        assert_eq!(names(&listed), expected, "{message:?}");
    };
    check(b"", [true, true, true]).await;
    check(b"\x08\x64\x22\x07default", [true, true, true]).await; // limit 100, workspace
    check(b"\x08\x01\x10\x01\x28\x01", [false, true, false]).await; // skip 1, all workspaces
    check(b"\x08\x01\x12\x01a\x22\x02\x12\x00", [false, true, false]).await; // after "a"
    check(b"\x1a\x03x=y", [false, false, false]).await; // a label that none has
    let page = open_shell("ListSandboxes", b"\x08\x02").await.unwrap();
    assert!(
        page.ends_with(b"\x12\x01b"),
        "the token of the next page: {page:?}"
    );
}

#[tokio::test]
async fn outcomes_and_expiries_are_said_in_both_dialects() {
    let deleted = open_shell("DeleteSandbox", b"\x0a\x02sb").await.unwrap();
    assert_eq!(deleted, &b"\x08\x01\x10\x01\x1a\x02sb"[..]);
    let absent = open_shell("DeleteSandbox", b"\x0a\x02no\x18\x01")
        .await
        .unwrap();
    assert_eq!(absent, &b"\x10\x03\x1a\x02no"[..]);
    let missing = open_shell("DeleteSandbox", b"\x0a\x02no")
        .await
        .unwrap_err();
    assert_eq!(missing.reason, Reason::SandboxNotFound);

    assert_eq!(
        open_shell("RevokeSshSession", b"\x0a\x05t0ken")
            .await
            .unwrap(),
        "\x08\x01\x10\x01"
    );
    assert_eq!(
        open_shell("RevokeSshSession", b"\x0a\x01x").await.unwrap(),
        "\x10\x03"
    );

    let token = open_shell("CreateSshSession", b"\x0a\x02sb\x1a\x02\x12\x00")
        .await
        .unwrap();
    assert!(
        token.ends_with(b"\x40\xc0\x84\x3d\xe2\x06\x03\x08\xe8\x07"),
        "{token:?}"
    );
}

#[tokio::test]
async fn a_request_without_a_name_is_invalid_and_says_so() {
    for method in ["GetSandbox", "DeleteSandbox", "CreateSshSession"] {
        let end = open_shell(method, b"").await.unwrap_err();
        assert_eq!(
            (end.origin, end.reason),
            (Origin::Client, Reason::InvalidRequest)
        );
        assert!(end.message.ends_with("is missing"), "{end}");
    }
    assert!(open_shell("GetSandbox", b"\x0a\x01/").await.is_err());
}

#[tokio::test]
async fn what_is_not_served_is_explained() {
    for path in [
        "/openshell.v1.OpenShell/CreateSandbox",
        "/openshell.v1.OpenShell/ForwardTcp",
        "/tidegate.v1.Operator/Nothing",
        "/some.other.Service/Method",
        "/",
    ] {
        let end = raw(path, b"").await.unwrap_err();
        assert_eq!(status::code(end.reason), Code::Unimplemented, "{path}");
        assert!(
            end.message.contains(path) && end.message.contains("Tidegate"),
            "{end}"
        );
    }
}

#[tokio::test]
async fn health_follows_its_switch() {
    let (mut service, switch) = routes(Arc::new(Constants)).await;
    for (serving, expected) in [(true, 1), (false, 2), (true, 1)] {
        switch.set_serving(serving).await;
        let request = Request::post("http://gateway/grpc.health.v1.Health/Check")
            .header("content-type", "application/grpc")
            .body(Body::new(Full::new(frame(
                b"\x0a\x16openshell.v1.OpenShell",
            ))))
            .unwrap();
        let response = GrpcService::call(&mut service, request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body[PREFIX_LEN..], [0x08, expected]);
    }
}

#[tokio::test]
async fn reflection_tells_of_streams_too() {
    for version in ["v1", "v1alpha"] {
        let path = format!("/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo");
        let symbol = b"openshell.v1.OpenShell";
        let asked = [&b"\x22\x16"[..], symbol].concat(); // file_containing_symbol
        let file = raw(&path, &asked).await.unwrap();
        assert!(contains(&file, b"ConnectSupervisor"));
    }
}

#[tokio::test]
async fn reflection_tells_of_health() {
    let path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
    let symbol = b"grpc.health.v1.Health";
    let asked = [&b"\x22\x15"[..], symbol].concat(); // file_containing_symbol
    let file = raw(path, &asked).await.unwrap();
    assert!(contains(&file, b"HealthCheckRequest"));
}

#[tokio::test]
async fn a_call_that_fails_on_our_side_is_a_lost_transport() {
    #[derive(Clone)]
    struct Broken;

    impl GrpcService<Body> for Broken {
        type ResponseBody = Body;
        type Error = std::io::Error;
        type Future = std::future::Ready<Result<http::Response<Body>, std::io::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            std::future::ready(Err(std::io::Error::other("cable cut")))
        }
    }

    let end = Client::new(Broken).health().await.unwrap_err();
    assert_eq!(
        end,
        End::new(Origin::Gateway, Reason::TransportLost, "cable cut")
    );
}

#[test]
fn secrets_are_not_printed() {
    let mut headers = HeaderMap::new();
    crate::metadata::set_bearer(&mut headers, "s3cret");
    let caller = Caller::new(&headers, http::Extensions::new());
    assert_eq!(caller.token(), Some("s3cret"));
    let printed = format!("{caller:?} {:?}", token());
    assert!(
        !printed.contains("s3cret") && !printed.contains("t0ken"),
        "{printed}"
    );
}
