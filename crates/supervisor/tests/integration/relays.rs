//! Relays, seen by a gateway that speaks all of Tidegate.

use std::time::{Duration, Instant};

use crate::common::gateway::{CAPABILITIES, Control, Gateway, Relay, claim};
use crate::common::{Running, config};
use tidegate_testkit::content::Content;
use tidegate_testkit::messages::{
    Cause, Empty, FromGateway, FromSupervisor, RelayClose, RelayFrame, RelayPayload,
};
use tidegate_testkit::raw_h2::{Connection, Received};
use tidegate_testkit::record::Ended;
use tidegate_testkit::target::{BlackHole, Target};
use tonic::Code;

struct Bench {
    gateway: Gateway,
    supervisor: Running,
    control: Control,
}

impl Bench {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(adjust: impl FnOnce(&mut tidegate_supervisor::Config)) -> Self {
        let gateway = Gateway::start().await;
        let mut config = config(gateway.address());
        adjust(&mut config);
        let mut supervisor = Running::start(config);
        let control = gateway.session().await;
        supervisor.live().await;
        Self {
            gateway,
            supervisor,
            control,
        }
    }

    /// Opens the first relay, and with it the data connection.
    async fn first(&mut self, target: &Target) -> (Connection, Relay) {
        self.control.ask("c1", target.address().port()).await;
        self.control.dialled("c1").await.unwrap();
        let mut data = self.gateway.data().await;
        let relay = claim(&mut data).await;
        (data, relay)
    }

    async fn next(&mut self, data: &mut Connection, channel: &str, target: &Target) -> Relay {
        self.control.ask(channel, target.address().port()).await;
        self.control.dialled(channel).await.unwrap();
        claim(data).await
    }

    async fn refusal(&mut self, host: &str, port: u16) -> Cause {
        self.control.ask_for("refused", host, port, 0).await;
        self.control.dialled("refused").await.unwrap_err()
    }

    async fn closed(&mut self, channel: &str) -> Cause {
        match self.control.heard().await {
            FromSupervisor::RelayClose(close) if close.channel_id == channel => {
                close.cause.unwrap()
            }
            other => panic!("{other:?} in place of the close of {channel}"),
        }
    }

    async fn close(&mut self, channel: &str, reason: &str) {
        let cause = Cause {
            reason: reason.into(),
            origin: "client".into(),
            ..Cause::default()
        };
        let close = RelayClose {
            channel_id: channel.into(),
            code: 1,
            cause: Some(cause),
            ..RelayClose::default()
        };
        self.control.say(FromGateway::RelayClose(close)).await;
    }
}

#[tokio::test]
async fn a_claim_names_its_relay_session_and_lane() {
    let mut bench = Bench::new().await;
    let target = Target::echo().unwrap();
    bench
        .control
        .ask_for("c1", "localhost", target.address().port(), 3)
        .await;
    bench.control.dialled("c1").await.unwrap();
    let mut data = bench.gateway.data().await;
    let mut relay = claim(&mut data).await;
    assert_eq!(relay.init.channel_id, "c1");
    assert_eq!(relay.init.session_id, "session-1");
    assert_eq!(relay.init.capabilities, CAPABILITIES[..4]);
    assert_eq!(relay.metadata["tidegate-lane"], "3");
    relay.echo(b"hello").await;
}

#[tokio::test]
async fn relays_of_a_lane_share_a_connection_and_lanes_do_not() {
    let mut bench = Bench::new().await;
    let target = Target::echo().unwrap();
    let (mut data, _first) = bench.first(&target).await;
    bench
        .next(&mut data, "c2", &target)
        .await
        .echo(b"same")
        .await;
    bench
        .control
        .ask_for("c3", "127.0.0.1", target.address().port(), 1)
        .await;
    bench.control.dialled("c3").await.unwrap();
    let mut other = bench.gateway.data().await;
    claim(&mut other).await.echo(b"other").await;
}

#[tokio::test]
async fn fin_goes_each_way_by_itself() {
    let mut bench = Bench::new().await;
    let target = Target::answer_after_end().unwrap();
    let (_data, mut relay) = bench.first(&target).await;
    relay.send(b"12345").await;
    relay
        .outbox
        .message(&RelayFrame::half_close())
        .await
        .unwrap();
    assert_eq!(relay.read(5).await, b"OK 5\n");
    assert_eq!(relay.next().await, Ok(RelayPayload::HalfClose(Empty {})));
    assert_eq!(relay.next().await, Err(Received::End));
    relay.outbox.status(Code::Ok).unwrap();
    let seen = target.next().await.until_closed().await;
    assert_eq!((seen.bytes_read, seen.read_end), (5, Some(Ended::Eof)));
}

#[tokio::test]
async fn a_target_that_ends_first_still_reads() {
    let mut bench = Bench::new().await;
    let target = Target::finish_first(Content::new(300_000, 7)).unwrap();
    let (_data, mut relay) = bench.first(&target).await;
    relay.read(300_000).await;
    assert_eq!(relay.next().await, Ok(RelayPayload::HalfClose(Empty {})));
    relay.send(b"still here").await;
    relay
        .outbox
        .message(&RelayFrame::half_close())
        .await
        .unwrap();
    let seen = target.next().await.until_read_end().await;
    assert_eq!((seen.bytes_read, seen.read_end), (10, Some(Ended::Eof)));
}

#[tokio::test]
async fn ss_23_a_reset_of_one_target_is_told_and_disturbs_nothing() {
    let mut bench = Bench::new().await;
    let (resetter, echo) = (Target::resetter(10).unwrap(), Target::echo().unwrap());
    let (mut data, mut relay) = bench.first(&resetter).await;
    let mut other = bench.next(&mut data, "c2", &echo).await;
    relay.read(10).await;
    resetter.next().await.cue();
    let cause = bench.closed("c1").await;
    assert_eq!(
        (cause.reason.as_str(), cause.origin.as_str()),
        ("TARGET_RESET", "target")
    );
    assert_eq!(cause.hops, ["supervisor"]);
    let end = relay.next().await;
    assert!(matches!(end, Err(Received::Lost(_))), "{end:?}");
    other.echo(b"undisturbed").await;
}

#[tokio::test]
async fn a_close_from_the_gateway_resets_the_target() {
    let mut bench = Bench::new().await;
    let echo = Target::echo().unwrap();
    let (mut data, mut relay) = bench.first(&echo).await;
    relay.echo(b"before").await;
    bench.close("c1", "CLIENT_CANCELLED").await;
    let seen = echo.next().await.until_reset(Duration::from_secs(5)).await;
    assert!(seen.was_reset(), "{seen:?}");
    // It caused that itself and is told nothing: the next word is about the next relay.
    bench
        .next(&mut data, "c2", &echo)
        .await
        .echo(b"after")
        .await;
}

#[tokio::test]
async fn sec_04_no_other_spelling_of_an_address_is_dialled() {
    let mut bench = Bench::new().await;
    for host in [
        "169.254.169.254",
        "10.0.0.1",
        "0.0.0.0",
        "::",
        "::ffff:169.254.169.254",
        "2852039166",
        "0xa9.254.43518",
    ] {
        let cause = bench.refusal(host, 80).await;
        let refused = matches!(
            cause.reason.as_str(),
            "TARGET_NOT_ALLOWED" | "TARGET_UNREACHABLE"
        );
        assert!(refused, "{host}: {cause:?}");
    }
    let echo = Target::echo().unwrap();
    bench.first(&echo).await.1.echo(b"allowed").await;
    assert_eq!(echo.accepted(), 1);
}

#[tokio::test]
async fn what_cannot_be_connected_is_told_with_its_reason() {
    let mut bench = Bench::new().await;
    let port = Target::echo().unwrap().address().port();
    let cause = bench.refusal("localhost", port).await;
    assert_eq!(
        (cause.reason.as_str(), cause.origin.as_str()),
        ("TARGET_REFUSED", "target")
    );
    let cause = bench.refusal("no-such-name.invalid", 80).await;
    assert_eq!(cause.reason, "TARGET_UNREACHABLE");
}

#[tokio::test]
async fn pf_24_a_target_that_swallows_everything_delays_nobody_else() {
    let hole = tokio::task::spawn_blocking(BlackHole::open)
        .await
        .unwrap()
        .unwrap();
    let mut bench = Bench::with(|config| config.dial_timeout = Duration::from_secs(2)).await;
    let echo = Target::echo().unwrap();
    let (mut data, first) = bench.first(&echo).await;
    let mut relays = vec![first];
    for channel in ["c2", "c3", "c4", "c5", "c6", "c7", "c8"] {
        relays.push(bench.next(&mut data, channel, &echo).await);
    }
    let begun = Instant::now();
    bench.control.ask("hole", hole.address().port()).await;
    let mut trips = Vec::new();
    while begun.elapsed() < Duration::from_secs(1) {
        for relay in &mut relays {
            let sent = Instant::now();
            relay.echo(b"x").await;
            trips.push(sent.elapsed());
        }
    }
    // Who waited for the dial would have waited until its end.
    let slowest = trips.iter().max().unwrap();
    let count = trips.len();
    assert!(*slowest < Duration::from_secs(1), "{slowest:?} of {count}");
    let cause = bench.control.dialled("hole").await.unwrap_err();
    assert_eq!(cause.reason, "DIAL_TIMEOUT");
    let late = begun.elapsed();
    // Its own limit, and not the default of 10 s.
    assert!((1..8).contains(&late.as_secs()), "{late:?}");
}

#[tokio::test]
async fn a_close_for_a_relay_that_is_still_dialled_stops_the_dial() {
    let hole = tokio::task::spawn_blocking(BlackHole::open)
        .await
        .unwrap()
        .unwrap();
    let mut bench = Bench::with(|config| config.max_streams = 1).await;
    bench.control.ask("hole", hole.address().port()).await;
    let full = bench.refusal("127.0.0.1", 80).await;
    assert_eq!(full.reason, "LIMIT_STREAMS");
    bench.close("hole", "CLIENT_CANCELLED").await;
    // Its place is free long before the dial's limit, and no result of it is told.
    let echo = Target::echo().unwrap();
    let port = echo.address().port();
    let begun = Instant::now();
    loop {
        bench.control.ask("c1", port).await;
        if bench.control.dialled("c1").await.is_ok() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    let mut data = bench.gateway.data().await;
    claim(&mut data).await.echo(b"free").await;
}

#[tokio::test]
async fn a_stalled_relay_delays_nobody_else() {
    let mut bench = Bench::new().await;
    let (endless, echo) = (Target::endless().unwrap(), Target::echo().unwrap());
    let (mut data, mut stalled) = bench.first(&endless).await;
    stalled.inbox.withhold_credit();
    stalled.read(1).await;
    let mut other = bench.next(&mut data, "c2", &echo).await;
    for _ in 0..100 {
        other.echo(b"moves").await;
    }
}

#[tokio::test]
async fn a_full_connection_is_joined_by_another() {
    let gateway = Gateway::start_with_limit(1).await;
    let _supervisor = Running::start(config(gateway.address()));
    let mut control = gateway.session().await;
    let echo = Target::echo().unwrap();
    let mut open = Vec::new();
    for channel in ["c1", "c2", "c3"] {
        control.ask(channel, echo.address().port()).await;
        control.dialled(channel).await.unwrap();
        let mut data = gateway.data().await;
        let relay = claim(&mut data).await;
        open.push((data, relay));
    }
    for (_, relay) in &mut open {
        relay.echo(b"each").await;
    }
}

#[tokio::test]
async fn a_lost_data_connection_is_replaced() {
    let mut bench = Bench::new().await;
    let echo = Target::echo().unwrap();
    let (data, relay) = bench.first(&echo).await;
    drop((data, relay));
    let seen = echo.next().await.until_reset(Duration::from_secs(5)).await;
    assert!(seen.was_reset(), "{seen:?}");
    bench.control.ask("c2", echo.address().port()).await;
    bench.control.dialled("c2").await.unwrap();
    let mut data = bench.gateway.data().await;
    claim(&mut data).await.echo(b"again").await;
}

#[tokio::test]
async fn a_lost_session_resets_its_targets_within_a_second() {
    let mut bench = Bench::new().await;
    let echo = Target::echo().unwrap();
    let (_data, mut relay) = bench.first(&echo).await;
    relay.echo(b"before").await;
    bench.control.cut();
    let seen = echo.next().await.until_reset(Duration::from_secs(1)).await;
    assert!(seen.was_reset(), "{seen:?}");
    bench.gateway.session().await;
}

#[tokio::test]
async fn a_stopped_supervisor_lets_streams_finish() {
    let mut bench = Bench::new().await;
    let echo = Target::echo().unwrap();
    let (_data, mut relay) = bench.first(&echo).await;
    bench.supervisor.stop();
    assert!(matches!(
        bench.control.heard().await,
        FromSupervisor::Goodbye(_)
    ));
    let refused = bench.refusal("127.0.0.1", echo.address().port()).await;
    assert_eq!(refused.reason, "STALE_SESSION");
    relay.echo(b"still served").await;
    relay
        .outbox
        .message(&RelayFrame::half_close())
        .await
        .unwrap();
    assert_eq!(relay.next().await, Ok(RelayPayload::HalfClose(Empty {})));
    relay.outbox.status(Code::Ok).unwrap();
    let end = bench.control.heard_or_end().await;
    assert!(matches!(end, Err(Received::End)), "{end:?}");
    bench.control.end(Code::Ok);
    bench.supervisor.ended().await.unwrap();
}

#[tokio::test]
async fn ss_15_what_does_not_finish_in_time_is_ended_with_the_reason() {
    let mut bench = Bench::with(|config| config.stop_grace = Duration::from_millis(200)).await;
    let echo = Target::echo().unwrap();
    let (_data, mut relay) = bench.first(&echo).await;
    relay.echo(b"before").await;
    bench.supervisor.stop();
    assert!(matches!(
        bench.control.heard().await,
        FromSupervisor::Goodbye(_)
    ));
    let cause = bench.closed("c1").await;
    assert_eq!(
        (cause.reason.as_str(), cause.origin.as_str()),
        ("SUPERVISOR_STOPPED", "supervisor")
    );
    let end = bench.control.heard_or_end().await;
    assert!(matches!(end, Err(Received::End)), "{end:?}");
    bench.control.end(Code::Ok);
    bench.supervisor.ended().await.unwrap();
    let seen = echo.next().await.until_reset(Duration::from_secs(5)).await;
    assert!(seen.was_reset(), "{seen:?}");
}
