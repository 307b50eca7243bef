//! The unary methods, and what they do to streams and sessions.

use tidegate_lifecycle::Reason;
use tidegate_lifecycle::id::StreamId;
use tidegate_testkit::messages::{ForwardInit, FromGateway};
use tidegate_testkit::raw_h2::Client as RawClient;
use tidegate_transport::{Connection, Endpoint};
use tidegate_wire::unary::{Client, Deletion, Phase, ServiceStatus};
use tonic::Code;

use crate::common::{Forward, Running, Supervisor, config, init, is, name, path};

async fn client(gateway: &Running) -> Client<Connection> {
    let endpoint = Endpoint::parse(&format!("http://{}", gateway.addr)).unwrap();
    Client::new(endpoint.connect().await.unwrap())
}

#[tokio::test]
async fn a_sandbox_has_its_phases() {
    let gateway = Running::start(config()).await;
    let client = client(&gateway).await;
    assert_eq!(
        client.health().await.unwrap().status,
        ServiceStatus::Healthy
    );
    assert_eq!(client.gateway_info().await.unwrap().gateway.as_str(), "gw0");
    assert_eq!(
        client.sandbox(&name("known")).await.unwrap().phase,
        Phase::Provisioning
    );
    let missing = client.sandbox(&name("nobody")).await.unwrap_err();
    assert_eq!(missing.reason, Reason::SandboxNotFound);

    let supervisor = Supervisor::connect(gateway.addr, "known").await;
    let sandbox = client.sandbox(&name("known")).await.unwrap();
    assert_eq!((sandbox.phase, sandbox.sessions), (Phase::Ready, 1));
    assert_eq!(sandbox.instance.unwrap().as_str(), "raw");
    assert_eq!(client.sandboxes().await.unwrap().len(), 1);

    drop(supervisor);
    let lost = tidegate_testkit::wait::until_async(tidegate_testkit::wait::GENEROUS, async || {
        client.sandbox(&name("known")).await.unwrap().phase == Phase::Unknown
    });
    lost.await.unwrap();
    gateway.stop().await;
}

#[tokio::test]
async fn streams_and_sessions_are_listed_and_closed_by_hand() {
    let gateway = Running::start(config()).await;
    let client = client(&gateway).await;
    let raw = RawClient::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (mut forward, relay) = path(&raw, &mut supervisor, "known").await;
    crate::common::works(&mut forward, &mut { relay }).await;
    let listed = client.streams(None).await.unwrap();
    let [stream] = listed.as_slice() else {
        panic!("{listed:?}")
    };
    assert_eq!(
        (stream.kind.as_str(), stream.target.as_str()),
        ("forward", "localhost:80")
    );
    assert_eq!((stream.bytes_up, stream.bytes_down), (4, 4));
    assert_eq!(stream.path[0].as_str(), "gw0");
    assert_eq!(
        forward.headers().await["tidegate-stream-id"],
        stream.id.as_str()
    );
    let sessions = client.sessions(Some(&name("known"))).await.unwrap();
    assert_eq!((sessions.len(), sessions[0].streams), (1, 1));
    assert_eq!(sessions[0].state, "live");
    assert!(
        client
            .sessions(Some(&name("other")))
            .await
            .unwrap()
            .is_empty()
    );

    client.close_stream(&stream.id).await.unwrap();
    is(&forward.outcome().await, Code::Cancelled, "OPERATOR_CLOSED");
    let FromGateway::RelayClose(close) = supervisor.next().await else {
        panic!("it is told")
    };
    assert_eq!(close.cause.unwrap().reason, "OPERATOR_CLOSED");
    let gone = client
        .close_stream(&StreamId::new("nothing"))
        .await
        .unwrap_err();
    assert_eq!(gone.reason, Reason::ChannelUnknown);

    let (forward, _relay) = path(&raw, &mut supervisor, "known").await;
    let closed = client.close_session(&name("known")).await.unwrap();
    assert_eq!(closed[0].as_str(), supervisor.accepted.session_id);
    is(
        &supervisor.outcome().await,
        Code::Cancelled,
        "OPERATOR_CLOSED",
    );
    is(&forward.outcome().await, Code::Cancelled, "OPERATOR_CLOSED");
    gateway.stop().await;
}

#[tokio::test]
async fn a_deleted_sandbox_is_gone_until_a_supervisor_brings_it_back() {
    let gateway = Running::start(config()).await;
    let client = client(&gateway).await;
    let raw = RawClient::connect(gateway.addr).await.unwrap();
    let waiting = Forward::open(&raw, init("known")).await;
    raw.ping().await.unwrap();
    assert_eq!(
        client.delete_sandbox(&name("known")).await.unwrap(),
        Deletion::Done
    );
    is(
        &waiting.outcome().await,
        Code::NotFound,
        "SANDBOX_NOT_FOUND",
    );
    assert_eq!(
        client.delete_sandbox(&name("nobody")).await.unwrap(),
        Deletion::AlreadyAbsent
    );

    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (forward, _relay) = path(&raw, &mut supervisor, "known").await;
    assert_eq!(
        client.delete_sandbox(&name("known")).await.unwrap(),
        Deletion::Done
    );
    is(
        &forward.outcome().await,
        Code::NotFound,
        "SANDBOX_NOT_FOUND",
    );
    assert!(supervisor.outcome().await.is_ok(), "it is for good");
    let after = Forward::open(&raw, init("known")).await.outcome().await;
    is(&after, Code::NotFound, "SANDBOX_NOT_FOUND");
    gateway.stop().await;
}

#[tokio::test]
async fn a_stream_with_a_token_needs_a_good_one() {
    let gateway = Running::start(config()).await;
    let client = client(&gateway).await;
    let raw = RawClient::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let session = client.create_ssh_session(&name("known")).await.unwrap();
    assert_eq!(session.gateway_port, gateway.addr.port());
    let with = |token: &str, sandbox: &str| ForwardInit {
        authorization_token: token.to_owned(),
        ..init(sandbox)
    };
    let good = Forward::open(&raw, with(&session.token, "known")).await;
    let open = supervisor.asked().await;
    supervisor.answer(&open.channel_id, Some("asked")).await;
    assert_eq!(good.outcome().await.message, "asked");

    let _other = Supervisor::connect(gateway.addr, "other").await;
    for (token, sandbox) in [("guess", "known"), (session.token.as_str(), "other")] {
        let outcome = Forward::open(&raw, with(token, sandbox))
            .await
            .outcome()
            .await;
        is(&outcome, Code::Unauthenticated, "CREDENTIAL_INVALID");
    }
    assert_eq!(
        client.revoke_ssh_session(&session.token).await.unwrap(),
        Deletion::Done
    );
    let revoked = Forward::open(&raw, with(&session.token, "known"))
        .await
        .outcome()
        .await;
    is(&revoked, Code::Unauthenticated, "CREDENTIAL_INVALID");
    let unknown = client
        .create_ssh_session(&name("nobody"))
        .await
        .unwrap_err();
    assert_eq!(unknown.reason, Reason::SandboxNotFound);
    gateway.stop().await;
}
