//! A gateway that was told to leave.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate_gateway::Config;
use tidegate_testkit::messages::{FromGateway, FromSupervisor, Goodbye, SessionDrain};
use tidegate_testkit::raw_h2::Client;
use tidegate_testkit::wait::{GENEROUS, until_async, within};
use tokio::net::TcpStream;
use tonic::Code;

use crate::admin::{metrics, page};
use crate::common::{
    Answer, Forward, Running, Supervisor, config, control, finishes, hello, init, is, names, path,
    works,
};

const LONG: Duration = Duration::from_secs(3600);
const MOMENT: Duration = Duration::from_millis(50);

/// A gateway that leaves in these times.
async fn gateway(announce: Duration, deadline: Duration) -> Running {
    Running::start(Config {
        drain_announce: announce,
        drain_deadline: deadline,
        ..config()
    })
    .await
}

async fn asked_to_move(supervisor: &mut Supervisor) -> SessionDrain {
    match supervisor.next().await {
        FromGateway::SessionDrain(drain) => drain,
        other => panic!("expected to be asked to move, got {other:?}"),
    }
}

async fn no_door(addr: SocketAddr) {
    let refused = || async { TcpStream::connect(addr).await.is_err() };
    until_async(GENEROUS, refused).await.unwrap();
}

#[tokio::test]
async fn ha_08_while_it_announces_that_it_leaves_it_serves_and_takes_no_session() {
    let gateway = gateway(LONG, LONG).await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    gateway.ask_to_leave();
    let drain = asked_to_move(&mut supervisor).await;
    let left = drain.deadline.unwrap();
    assert!((3500..=3600).contains(&left.seconds), "{left:?}");
    assert!(page(&gateway, "readyz").await.is_err());
    assert_eq!(page(&gateway, "healthz").await.unwrap(), "ok\n");
    // A new connection and a new stream on it.
    let client = Client::connect(gateway.addr).await.unwrap();
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    works(&mut forward, &mut relay).await;
    let remaining = metrics(&gateway).await.gauges;
    assert_eq!(remaining["tidegate_drain_remaining{what=\"streams\"}"], 1.0);
    assert_eq!(
        remaining["tidegate_drain_remaining{what=\"sessions\"}"],
        1.0
    );
    let call = control(&client, vec![FromSupervisor::Hello(hello("known"))]).await;
    let refused = Answer::Waiting(call.response).outcome();
    let refused = within(GENEROUS, "a refusal", refused).await;
    is(&refused, Code::Unavailable, "GATEWAY_DRAINING");
    finishes(forward, relay).await;
    gateway.stop().await;
}

#[tokio::test]
async fn ha_07_a_stream_that_ends_in_time_is_not_cut_and_is_waited_for() {
    let mut gateway = gateway(MOMENT, LONG).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    gateway.ask_to_leave();
    asked_to_move(&mut supervisor).await;
    no_door(gateway.addr).await;
    works(&mut forward, &mut relay).await;
    // It has another session now, and lets go of this one.
    let deadline = Some(Duration::from_secs(600).try_into().unwrap());
    supervisor
        .say(FromSupervisor::Goodbye(Goodbye { deadline }))
        .await;
    works(&mut forward, &mut relay).await;
    assert!(gateway.is_here(), "a stream is open");
    finishes(forward, relay).await;
    assert!(supervisor.outcome().await.is_ok());
    drop((client, supervisor));
    gateway.gone().await;
}

#[tokio::test]
async fn what_is_open_at_the_deadline_is_ended_with_its_reason() {
    let mut gateway = gateway(MOMENT, Duration::from_secs(2)).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    gateway.ask_to_leave();
    asked_to_move(&mut supervisor).await;
    works(&mut forward, &mut relay).await;
    for outcome in [forward.outcome().await, relay.answer.outcome().await] {
        is(&outcome, Code::Unavailable, "GATEWAY_DRAINING");
    }
    is(
        &supervisor.outcome().await,
        Code::Unavailable,
        "GATEWAY_DRAINING",
    );
    drop((client, supervisor));
    gateway.gone().await;
}

#[tokio::test]
async fn who_is_told_twice_does_not_wait() {
    let gateway = gateway(MOMENT, LONG).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (forward, _relay) = path(&client, &mut supervisor, "known").await;
    gateway.ask_to_leave();
    asked_to_move(&mut supervisor).await;
    gateway.ask_to_stop();
    is(
        &forward.outcome().await,
        Code::Unavailable,
        "GATEWAY_DRAINING",
    );
    drop((client, supervisor));
    gateway.stop().await;
}

/// A stream that came before the door was closed opens its relay after it, on the connection that its
/// supervisor has.
#[tokio::test]
async fn a_path_that_is_being_opened_when_the_door_closes_is_opened() {
    let mut gateway = gateway(MOMENT, LONG).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let mut forward = Forward::open(&client, init("known")).await;
    let open = supervisor.asked().await;
    gateway.ask_to_leave();
    asked_to_move(&mut supervisor).await;
    no_door(gateway.addr).await;
    supervisor.answer(&open.channel_id, None).await;
    let mut relay = supervisor
        .claim(supervisor.relay_init(&open.channel_id))
        .await;
    works(&mut forward, &mut relay).await;
    finishes(forward, relay).await;
    drop((client, supervisor));
    gateway.gone().await;
}

/// Its supervisor cannot be asked to move. It is told when it has nothing to lose.
#[tokio::test]
async fn an_older_supervisor_is_sent_away_when_it_carries_nothing() {
    let mut gateway = gateway(MOMENT, LONG).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut older = hello("known");
    older.capabilities = names(&["stream-half-close-v1", "stream-explicit-fin-v1"]);
    let mut supervisor = Supervisor::greet(gateway.addr, older).await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    gateway.ask_to_leave();
    no_door(gateway.addr).await;
    works(&mut forward, &mut relay).await;
    finishes(forward, relay).await;
    is(
        &supervisor.outcome().await,
        Code::Unavailable,
        "GATEWAY_DRAINING",
    );
    drop((client, supervisor));
    gateway.gone().await;
}

/// There may be no other gateway: then nobody moves, and nobody is waited for.
#[tokio::test]
async fn a_session_without_a_place_to_go_does_not_keep_an_idle_gateway() {
    let mut gateway = gateway(MOMENT, LONG).await;
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    gateway.ask_to_leave();
    asked_to_move(&mut supervisor).await;
    is(
        &supervisor.outcome().await,
        Code::Unavailable,
        "GATEWAY_DRAINING",
    );
    drop(supervisor);
    gateway.gone().await;
}

/// A supervisor that looks for a further gateway, and finds this one, loses nothing by it.
#[tokio::test]
async fn a_further_home_is_not_a_successor() {
    let gateway = gateway(LONG, LONG).await;
    let client = Client::connect(gateway.addr).await.unwrap();
    let mut supervisor = Supervisor::connect(gateway.addr, "known").await;
    let (mut forward, mut relay) = path(&client, &mut supervisor, "known").await;
    let mut further = hello("known");
    further.homes = 2;
    further.held = names(&["gw0"]);
    let call = control(&client, vec![FromSupervisor::Hello(further.clone())]).await;
    let refused = Answer::Waiting(call.response).outcome().await;
    is(&refused, Code::AlreadyExists, "DUPLICATE_SESSION");
    works(&mut forward, &mut relay).await;
    finishes(forward, relay).await;
    // Whose session it was is asked here, not there: after a loss the gateway takes it back.
    let mut again = further;
    again.instance_id = "another".to_owned();
    let mut successor = Supervisor::greet(gateway.addr, again).await;
    is(&supervisor.outcome().await, Code::Unavailable, "SUPERSEDED");
    successor.is_alive(gateway.addr).await;
    gateway.stop().await;
}
