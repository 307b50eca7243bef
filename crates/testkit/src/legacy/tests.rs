//! The legacy peers behave as released ones do.

use std::time::Duration;

use http::HeaderMap;
use tonic::{Code, Status};

use super::*;
use crate::{
    content::Content,
    messages::{CreateSshSessionResponse, ForwardFrame, FromSupervisor, path},
    raw_h2::{self, Received},
    record::Ended,
    target::Target,
    wait::GENEROUS,
};

async fn session(dialect: Dialect) -> (Gateway, Supervisor, Session) {
    let options = GatewayOptions {
        dialect,
        ..GatewayOptions::default()
    };
    let gateway = Gateway::start(options).unwrap();
    let options = SupervisorOptions {
        dialect,
        ..SupervisorOptions::new(gateway.address(), "box")
    };
    let supervisor = Supervisor::start(options).unwrap();
    let session = gateway.session().await;
    assert_eq!(supervisor.accepted().await.session_id, session.id());
    (gateway, supervisor, session)
}

async fn open(session: &Session, target: &Target) -> Relay {
    session
        .open("127.0.0.1", target.address().port())
        .await
        .unwrap()
}

#[tokio::test]
async fn a_client_first_half_close_gets_its_answer() {
    for dialect in [Dialect::Old, Dialect::New, Dialect::Proposed] {
        let (_gateway, _supervisor, session) = session(dialect).await;
        let target = Target::answer_after_end().unwrap();
        let mut relay = open(&session, &target).await;
        assert!(relay.send("12345").await);
        relay.finish();
        let end = relay.read_to_end().await;
        assert_eq!((end.bytes, end.outcome.code), (5, Code::Ok), "{dialect:?}");
    }
}

#[tokio::test]
async fn a_target_first_half_close_is_only_told_by_the_proposed_revision() {
    for dialect in [Dialect::Old, Dialect::Proposed] {
        let (_gateway, _supervisor, session) = session(dialect).await;
        let content = Content::new(100_000, 1);
        let target = Target::finish_first(content).unwrap();
        let mut relay = open(&session, &target).await;
        assert_eq!(relay.read(100_000).await.len(), 100_000);
        let told = tokio::time::timeout(Duration::from_millis(300), relay.next()).await;
        assert_eq!(told.is_ok(), dialect == Dialect::Proposed);
        assert!(relay.send("still").await);
        relay.finish();
        let seen = target.next().await.until_read_end().await;
        assert_eq!((seen.bytes_read, seen.read_end), (5, Some(Ended::Eof)));
    }
}

#[tokio::test]
async fn a_refused_dial_is_answered() {
    let (_gateway, _supervisor, session) = session(Dialect::Old).await;
    let port = Target::echo().unwrap().address().port();
    let refused = session.open("127.0.0.1", port).await.unwrap_err();
    assert!(!refused.error.is_empty());
}

#[tokio::test]
async fn heartbeats_go_both_ways() {
    let heartbeat = Duration::from_millis(50);
    let options = GatewayOptions {
        heartbeat,
        dialect: Dialect::New,
        sends_heartbeats: true,
    };
    let gateway = Gateway::start(options).unwrap();
    let mut options = SupervisorOptions::new(gateway.address(), "box");
    options.heartbeats = Heartbeats::Every(heartbeat);
    let supervisor = Supervisor::start(options).unwrap();
    let session = gateway.session().await;
    let heard =
        |message: &FromSupervisor| matches!(message, FromSupervisor::Heartbeat(_)).then_some(());
    session.message("a heartbeat", heard).await;
    supervisor
        .event("a heartbeat", |event| {
            (*event == Event::Heartbeat).then_some(())
        })
        .await;
}

#[tokio::test]
async fn the_end_of_a_session_is_told_with_its_status() {
    let (_gateway, supervisor, session) = session(Dialect::Old).await;
    session.end(Status::unavailable("draining")).await;
    assert_eq!(supervisor.session_ended().await.code, Code::Unavailable);
}

#[tokio::test]
async fn a_client_forwards_with_a_ticket() {
    let server = raw_h2::Server::bind().await.unwrap();
    let address = server.address().unwrap();
    let gateway = async {
        let mut connection = server.accept().await.unwrap();
        let ticket = connection.call().await;
        assert_eq!(ticket.path(), path::CREATE_SSH_SESSION);
        let (mut outbox, _inbox) = ticket.accept(HeaderMap::new()).unwrap();
        let token = "ticket".to_owned();
        let answer = CreateSshSessionResponse {
            token,
            ..CreateSshSessionResponse::default()
        };
        outbox.message(&answer).await.unwrap();
        outbox.status(Code::Ok).unwrap();
        let (mut outbox, mut inbox) = connection.call().await.accept(HeaderMap::new()).unwrap();
        outbox.message(&ForwardFrame::data("hello")).await.unwrap();
        let (requests, end) = inbox.rest().await;
        assert_eq!((requests.len(), end), (3, Received::End));
        outbox.status(Code::Ok).unwrap();
        crate::wait::within(GENEROUS, "the client to go", connection.closed())
            .await
            .unwrap();
    };
    let client = async {
        let client = Client::connect(address, Dialect::New).await.unwrap();
        let mut forward = client.forward("box", "localhost", 80).await.unwrap();
        assert_eq!(forward.read(5).await, b"hello");
        assert!(forward.send(vec![0; 100_000]).await);
        forward.finish();
        let end = forward.read_to_end().await;
        assert_eq!(
            (end.bytes, end.half_closes, end.outcome.code),
            (0, 0, Code::Ok)
        );
    };
    tokio::join!(gateway, client);
}
