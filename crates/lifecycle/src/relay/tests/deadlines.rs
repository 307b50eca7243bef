//! Silence is valid for ever, unless somebody configured otherwise.

use super::*;
use HalfClose::{Explicit, Response};

const LIMIT: Duration = Duration::from_secs(2);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn nothing_expires_by_default() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.hears(DOWN, Arrival::FinFrame);
    assert_eq!(rig.machine.poll_timeout(), None);
    rig.passes(SECOND * 1_000_000);
    assert!(rig.is_open());
}

#[test]
fn pf_21_a_half_closed_silence_is_reaped() {
    let mut rig = half_close_idle();
    rig.hears(DOWN, Arrival::FinFrame);
    assert_eq!(rig.machine.poll_timeout(), Some(rig.now + LIMIT));
    rig.passes(LIMIT);
    let idle = Some((Origin::Gateway, Reason::HalfCloseIdle));
    assert_eq!([told(&rig.said(DOWN)), told(&rig.said(UP))], [idle, idle]);
}

#[test]
fn pf_21_a_slow_reply_is_not_reaped() {
    let mut rig = half_close_idle();
    rig.hears(DOWN, Arrival::FinFrame);
    for _ in 0..20 {
        rig.passes(SECOND);
        assert_eq!(rig.hears(UP, Arrival::Data(1)), Take::Deliver);
    }
    rig.hears(UP, Arrival::FinFrame);
    rig.hears(UP, Arrival::End);
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn pf_21_an_open_silence_is_not_reaped() {
    let mut rig = half_close_idle();
    rig.passes(LIMIT * 10);
    assert!(rig.is_open());
}

#[test]
fn an_idle_stream_ends_and_any_byte_counts_as_life() {
    let limits = StreamLimits {
        idle: Some(LIMIT),
        ..StreamLimits::default()
    };
    let mut rig = Rig::limited_gateway(limits, Explicit, Explicit);
    rig.passes(SECOND);
    rig.hears(DOWN, Arrival::Data(1));
    rig.passes(SECOND);
    rig.machine.progressed(UP, rig.now);
    rig.passes(SECOND);
    rig.hears(UP, Arrival::Data(0));
    rig.passes(SECOND);
    assert_eq!(
        rig.reason(),
        Some(Err(Reason::IdleTimeout)),
        "an empty frame is no byte"
    );
}

#[test]
fn silence_counts_from_the_opening_of_the_path() {
    let limits = StreamLimits {
        idle: Some(LIMIT),
        half_close_idle: Some(LIMIT),
        write_stall: Some(LIMIT),
        ..StreamLimits::default()
    };
    let downstream = Leg::acceptor(Orientation::Forward, Explicit);
    let mut rig = Rig::with(limits, downstream, Leg::awaited(), Origin::Gateway);
    rig.stalls(UP, true);
    rig.hears(DOWN, Arrival::Data(1));
    rig.hears(DOWN, Arrival::FinFrame);
    rig.machine.blocked(UP, rig.now);
    assert_eq!(rig.machine.poll_timeout(), None);
    rig.passes(LIMIT * 10);
    assert!(rig.is_open(), "{:?}", rig.reason());

    rig.machine.opened(UP, Explicit);
    rig.step();
    assert_eq!(rig.machine.poll_timeout(), Some(rig.now + LIMIT));
    rig.passes(LIMIT);
    assert_eq!(rig.reason(), Some(Err(Reason::WriteStalled)));
}

#[test]
fn a_reader_that_takes_nothing_ends_the_stream_where_that_is_configured() {
    let limits = StreamLimits {
        write_stall: Some(LIMIT),
        ..StreamLimits::default()
    };
    let mut rig = Rig::limited_gateway(limits, Explicit, Explicit);
    rig.stalls(DOWN, true);
    rig.machine.blocked(DOWN, rig.now);
    rig.passes(SECOND);
    rig.machine.blocked(DOWN, rig.now);
    rig.machine.progressed(DOWN, rig.now);
    rig.passes(SECOND);
    assert!(rig.is_open(), "it took something a second ago");
    rig.passes(SECOND);
    assert_eq!(rig.reason(), Some(Err(Reason::WriteStalled)));

    let mut rig = Rig::limited_gateway(limits, Explicit, Explicit);
    rig.machine.blocked(DOWN, rig.now);
    rig.step();
    rig.passes(LIMIT);
    assert!(rig.is_open(), "it took everything");
}

#[test]
fn the_callers_deadline_holds_for_the_streams_whole_life() {
    let mut rig = Rig::client(Explicit);
    rig.machine.set_deadline(rig.now + LIMIT);
    rig.hears(DOWN, Arrival::Data(1));
    assert_eq!(rig.machine.poll_timeout(), Some(rig.now + LIMIT));
    rig.passes(LIMIT);
    assert_eq!(
        told(&rig.said(DOWN)),
        Some((Origin::Client, Reason::OperationTimeout))
    );
}

#[test]
fn silence_is_filled_only_where_that_was_agreed() {
    let limits = StreamLimits {
        keepalive: Some(SECOND),
        ..StreamLimits::default()
    };
    let mut rig = Rig::limited_gateway(limits, Response, Explicit);
    rig.passes(SECOND / 2);
    assert_eq!(rig.hears(DOWN, Arrival::Data(1)), Take::Deliver);
    rig.passes(SECOND / 2);
    assert_eq!(rig.said(UP), [], "it heard from us half a second ago");
    rig.passes(SECOND / 2);
    assert_eq!(rig.said(UP), [Write::Keepalive]);
    assert_eq!(rig.said(DOWN), []);
    rig.hears(DOWN, Arrival::End);
    rig.passes(SECOND * 10);
    assert_eq!(rig.said(UP), [Write::FinFrame], "nothing follows FIN");
}

fn half_close_idle() -> Rig {
    let limits = StreamLimits {
        half_close_idle: Some(LIMIT),
        ..StreamLimits::default()
    };
    Rig::limited_gateway(limits, Explicit, Explicit)
}
