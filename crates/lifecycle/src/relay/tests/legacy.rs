//! Peers that cannot half-close, or only one way.

use super::*;
use HalfClose::{Explicit, Unsupported};

const GRACE: Duration = Duration::from_millis(500);
const TICK: Duration = Duration::from_millis(1);

/// A legacy client whose target has finished.
fn withholding() -> Rig {
    withholding_from(Rig::gateway(Unsupported, Explicit))
}

/// The same with a client that has not read it yet.
fn withholding_from_a_slow_reader() -> Rig {
    let mut rig = Rig::gateway(Unsupported, Explicit);
    rig.stalls(DOWN, true);
    withholding_from(rig)
}

fn withholding_from(mut rig: Rig) -> Rig {
    rig.hears(UP, Arrival::Data(9));
    rig.hears(UP, Arrival::FinFrame);
    assert_eq!(
        rig.said(DOWN),
        [],
        "OK would end what the client still sends"
    );
    rig
}

#[test]
fn a_silent_legacy_client_gets_ok_and_its_target_a_reset() {
    let mut rig = withholding();
    assert_eq!(rig.machine.poll_timeout(), Some(rig.now + GRACE));
    rig.passes(GRACE - TICK);
    assert!(rig.is_open());
    rig.passes(TICK);
    assert_eq!(rig.said(DOWN), [Write::Ok]);
    assert_eq!(
        told(&rig.said(UP)),
        Some((Origin::Gateway, Reason::HalfCloseIdle))
    );
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn a_legacy_client_that_sends_is_not_silent() {
    let mut rig = withholding();
    for _ in 0..10 {
        rig.passes(GRACE - TICK);
        assert_eq!(rig.hears(DOWN, Arrival::Data(1)), Take::Deliver);
    }
    rig.hears(DOWN, Arrival::End);
    rig.hears(UP, Arrival::End);
    assert_eq!(rig.said(DOWN), [Write::Ok]);
    assert_eq!(rig.said(UP), [Write::FinFrame, Write::Ok]);
}

#[test]
fn a_legacy_client_that_still_reads_is_not_silent() {
    let mut rig = withholding_from_a_slow_reader();
    rig.passes(GRACE * 10);
    assert!(rig.is_open(), "it cannot answer what it has not read");
    rig.machine.progressed(DOWN, rig.now);
    rig.stalls(DOWN, false);
    rig.passes(GRACE - TICK);
    assert!(rig.is_open());
    rig.passes(TICK);
    assert_eq!(rig.said(DOWN), [Write::Ok]);
}

#[test]
fn a_legacy_client_whose_bytes_wait_for_the_target_is_not_silent() {
    let mut rig = withholding();
    rig.stalls(UP, true);
    rig.hears(DOWN, Arrival::Data(9));
    rig.passes(GRACE * 10);
    assert!(rig.is_open());
    assert_eq!(rig.machine.poll_timeout(), None);
}

#[test]
fn a_target_that_takes_no_more_does_not_spoil_what_it_gave_to_a_legacy_client() {
    let mut rig = withholding_from_a_slow_reader();
    rig.loses(UP, Rank::Typed, target_reset());
    assert!(rig.is_open(), "OK comes behind the last byte");
    assert_eq!(rig.hears(DOWN, Arrival::Data(1)), Take::Discard);
    assert_eq!(rig.machine.poll_timeout(), None);
    rig.stalls(DOWN, false);
    assert_eq!(rig.said(DOWN), [Write::Ok]);
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn a_client_that_leaves_before_it_got_everything_is_no_success() {
    let mut rig = withholding_from_a_slow_reader();
    rig.loses(UP, Rank::Typed, target_reset());
    rig.loses(UP, Rank::Transport, lost(Origin::Supervisor));
    assert!(rig.is_open());
    rig.loses(
        DOWN,
        Rank::Typed,
        end(Origin::Client, Reason::ClientCancelled),
    );
    assert_eq!(rig.reason(), Some(Err(Reason::ClientCancelled)));
    assert_eq!(rig.said(UP), [], "the supervisor ended it first");
}

#[test]
fn any_other_failure_reaches_a_legacy_client() {
    let mut rig = withholding();
    rig.loses(
        UP,
        Rank::Typed,
        end(Origin::Supervisor, Reason::SupervisorLost),
    );
    assert_eq!(
        told(&rig.said(DOWN)),
        Some((Origin::Supervisor, Reason::SupervisorLost))
    );
}

#[test]
fn a_legacy_client_that_has_finished_is_told_that_its_bytes_were_refused() {
    let mut rig = withholding();
    rig.hears(DOWN, Arrival::End);
    rig.loses(UP, Rank::Typed, target_reset());
    assert_eq!(
        told(&rig.said(DOWN)),
        Some((Origin::Target, Reason::TargetReset))
    );
}

#[test]
fn a_legacy_client_that_resets_while_uploading_resets_its_target() {
    let mut rig = withholding();
    rig.loses(
        DOWN,
        Rank::Typed,
        end(Origin::Client, Reason::ClientCancelled),
    );
    assert_eq!(
        told(&rig.said(UP)),
        Some((Origin::Client, Reason::ClientCancelled))
    );
}

#[test]
fn a_legacy_supervisor_hears_fin_as_the_end_of_the_response_and_still_replies() {
    let mut rig = Rig::gateway(Explicit, Unsupported);
    rig.hears(DOWN, Arrival::FinFrame);
    assert_eq!(rig.said(UP), [Write::Ok]);
    assert_eq!(rig.hears(UP, Arrival::Data(5)), Take::Deliver);
    rig.hears(UP, Arrival::End);
    assert_eq!(rig.said(DOWN), [Write::FinFrame, Write::Ok]);
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn a_legacy_supervisor_that_has_its_trailers_can_still_be_reset() {
    let mut rig = Rig::gateway(Explicit, Unsupported);
    rig.hears(DOWN, Arrival::FinFrame);
    rig.hears(DOWN, Arrival::End);
    let cancelled = end(Origin::Client, Reason::ClientCancelled);
    rig.loses(DOWN, Rank::Typed, cancelled.clone());
    assert_eq!(rig.said(UP), [Write::Ok, Write::Reset(via_here(cancelled))]);
}

#[test]
fn our_supervisor_keeps_replying_to_a_legacy_gateway_that_has_ended_its_response() {
    let mut rig = Rig::supervisor(Unsupported);
    rig.hears(DOWN, Arrival::End);
    assert_eq!(rig.said(UP), [Write::EndStream]);
    assert_eq!(rig.hears(UP, Arrival::Data(5)), Take::Deliver);
    rig.hears(UP, Arrival::End);
    assert_eq!(rig.said(DOWN), [Write::EndStream]);
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn nothing_is_sent_to_a_legacy_peer_that_it_does_not_know() {
    let limits = StreamLimits {
        keepalive: Some(TICK),
        ..StreamLimits::default()
    };
    let mut rig = Rig::limited_gateway(limits, Unsupported, Unsupported);
    rig.passes(GRACE);
    rig.hears(UP, Arrival::End);
    rig.passes(GRACE);
    for side in Side::BOTH {
        let said = rig.said(side);
        assert!(!said.contains(&Write::FinFrame) && !said.contains(&Write::Keepalive));
    }
}
