//! Sessions at several gateways, and gateways that leave.

use std::time::Duration;

use tidegate_lifecycle::{End, Origin, Reason};
use tidegate_supervisor::StopReason;
use tidegate_supervisor::config::{GatewayUrl, Homes};
use tidegate_testkit::messages::FromSupervisor;
use tidegate_testkit::target::Target;
use tidegate_wire::status;
use tonic::Code;

use crate::common::gateway::{Control, Gateway, claim};
use crate::common::{Running, config};

const MOMENT: Duration = Duration::from_millis(300);

/// Two gateways, and a supervisor that wants sessions with so many of them.
async fn two(homes: u8) -> (Gateway, Gateway, Running) {
    let (first, second) = (Gateway::start().await, Gateway::start().await);
    let mut config = config(first.address());
    config.gateway.push(GatewayUrl(url(&second)));
    config.homes = Homes(homes);
    let supervisor = Running::start(config);
    (first, second, supervisor)
}

fn url(gateway: &Gateway) -> String {
    format!("http://{}", gateway.address())
}

fn because(reason: Reason) -> http::HeaderMap {
    status::trailers(&End::new(Origin::Gateway, reason, "it says so"))
}

/// Shows that the session takes streams: it tries to connect where nobody listens.
async fn serves(control: &mut Control, channel: &str) {
    control.ask(channel, 1).await;
    let refused = control.dialled(channel).await.unwrap_err();
    assert_eq!(refused.reason, "TARGET_REFUSED");
}

#[tokio::test]
async fn ha_07_a_session_is_let_go_only_when_another_stands_and_keeps_its_streams() {
    let (first, second, mut supervisor) = two(1).await;
    let mut old = first.session_at("gw0").await;
    supervisor.live().await;
    let echo = Target::echo().unwrap();
    old.ask("long", echo.address().port()).await;
    old.dialled("long").await.unwrap();
    let mut data = first.data().await;
    let mut long = claim(&mut data).await;
    long.echo(b"before").await;

    old.ask_to_move(&[]).await;
    let mut new = second.hello().await;
    assert_eq!(new.hello.replaces, "gw0");
    assert_eq!(new.hello.held, ["gw0"]);
    serves(&mut old, "while it moves").await;
    supervisor.live().await;

    new.accept_as("gw1").await;
    let FromSupervisor::Goodbye(goodbye) = old.heard().await else {
        panic!("it does not let go");
    };
    assert!(goodbye.deadline.unwrap().seconds >= 300, "{goodbye:?}");
    serves(&mut new, "after it moved").await;
    old.ask("too late", echo.address().port()).await;
    let refused = old.dialled("too late").await.unwrap_err();
    assert_eq!(refused.reason, "STALE_SESSION");
    long.echo(b"after").await;
    assert!(supervisor.outlives(MOMENT).await);
}

#[tokio::test]
async fn the_end_of_a_session_that_was_let_go_is_no_news_of_the_sandbox() {
    let (first, second, mut supervisor) = two(1).await;
    let mut old = first.session_at("gw0").await;
    old.ask_to_move(&[]).await;
    let mut new = second.session_at("gw1").await;
    assert!(matches!(old.heard().await, FromSupervisor::Goodbye(_)));
    // What the gateway asks for before it has heard that is answered.
    old.ask("too late", 1).await;
    let refused = old.dialled("too late").await.unwrap_err();
    assert_eq!(refused.reason, "STALE_SESSION");
    old.end(Code::Ok);
    assert!(supervisor.outlives(MOMENT).await);
    serves(&mut new, "all is well").await;
}

#[tokio::test]
async fn a_gateway_can_say_where_others_are() {
    let (first, second) = (Gateway::start().await, Gateway::start().await);
    let _supervisor = Running::start(config(first.address()));
    let mut old = first.session_at("gw0").await;
    let nonsense = ["https://127.0.0.1:1".to_owned(), "nonsense".to_owned()];
    old.ask_to_move(&[&nonsense[..], &[url(&second)]].concat())
        .await;
    let mut new = second.session_at("gw1").await;
    serves(&mut new, "there").await;
}

/// As behind a balancer, where the next connection may end anywhere.
#[tokio::test]
async fn data_goes_where_the_gateway_says_that_it_is() {
    let (balancer, itself) = (Gateway::start().await, Gateway::start().await);
    let _supervisor = Running::start(config(balancer.address()));
    let mut control = balancer.hello().await;
    control.accept_with("gw0", &url(&itself)).await;
    let echo = Target::echo().unwrap();
    control.ask("c", echo.address().port()).await;
    control.dialled("c").await.unwrap();
    let mut data = itself.data().await;
    claim(&mut data).await.echo(b"here").await;
}

#[tokio::test]
async fn a_gateway_that_is_alone_keeps_its_session_until_it_is_gone() {
    let gateway = Gateway::start().await;
    let _supervisor = Running::start(config(gateway.address()));
    let mut old = gateway.session_at("gw0").await;
    old.ask_to_move(&[]).await;
    for _ in 0..3 {
        let mut attempt = gateway.hello().await;
        assert_eq!(attempt.hello.held, ["gw0"]);
        attempt.end_with(because(Reason::GatewayDraining));
    }
    serves(&mut old, "meanwhile").await;
    old.end_with(because(Reason::GatewayDraining));
    let mut next = gateway.session_at("gw0").await;
    assert_eq!(next.hello.replaces, "gw0");
    serves(&mut next, "after it").await;
}

#[tokio::test]
async fn with_two_homes_the_loss_of_one_cuts_nobody_off() {
    let (first, second, mut supervisor) = two(2).await;
    let one = first.session_at("gw0").await;
    let mut other = second.session_at("gw1").await;
    assert_eq!((one.hello.homes, other.hello.homes), (2, 2));
    supervisor.live().await;
    one.cut();
    serves(&mut other, "all the time").await;
    let mut back = first.session_at("gw0").await;
    assert_eq!(back.hello.held, ["gw1"]);
    serves(&mut back, "again").await;
    supervisor.stop();
    for mut control in [back, other] {
        while !matches!(control.heard().await, FromSupervisor::Goodbye(_)) {}
    }
}

#[tokio::test]
async fn a_home_that_is_nowhere_costs_the_other_nothing() {
    let gateway = Gateway::start().await;
    let mut config = config(gateway.address());
    config.homes = Homes(2);
    let mut supervisor = Running::start(config);
    let mut only = gateway.session_at("gw0").await;
    for _ in 0..3 {
        let mut further = gateway.hello().await;
        assert_eq!(further.hello.held, ["gw0"]);
        further.end_with(because(Reason::DuplicateSession));
    }
    serves(&mut only, "as ever").await;
    supervisor.live().await;
}

#[tokio::test]
async fn another_instance_is_given_way_to_by_all_homes() {
    let (first, second, mut supervisor) = two(2).await;
    let _one = first.session_at("gw0").await;
    let mut other = second.session_at("gw1").await;
    serves(&mut other, "before").await;
    other.end_with(because(Reason::Superseded));
    let stopped = supervisor.ended().await.unwrap_err();
    assert!(
        matches!(stopped, StopReason::Superseded { .. }),
        "{stopped:?}"
    );
}
