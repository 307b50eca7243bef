//! Aborts: who is told what, and which ending wins.

use super::*;
use HalfClose::{Explicit, Response, Unsupported};

const STEP: Duration = Duration::from_secs(1);

#[test]
fn pf_13_a_targets_reset_is_never_an_end_of_file() {
    let mut rig = Rig::supervisor(Explicit);
    rig.hears(UP, Arrival::Data(1000));
    rig.loses(UP, Rank::Typed, target_reset());
    assert_eq!(rig.said(DOWN), [Write::Reset(via_here(target_reset()))]);

    let mut rig = Rig::client(Explicit);
    rig.loses(UP, Rank::Typed, target_reset());
    assert_eq!(rig.said(DOWN), [Write::Reset(via_here(target_reset()))]);
    assert_eq!(rig.said(UP), [], "the gateway has ended the RPC");
}

#[test]
fn pf_14_a_clients_reset_is_never_an_end_of_file() {
    let reset = end(Origin::Client, Reason::ClientReset);
    let mut rig = Rig::client(Explicit);
    rig.hears(DOWN, Arrival::Data(1 << 20));
    rig.loses(DOWN, Rank::Typed, reset.clone());
    assert_eq!(rig.said(UP), [Write::Reset(via_here(reset.clone()))]);

    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.loses(DOWN, Rank::Typed, reset.clone());
    assert_eq!(rig.said(UP), [Write::Status(via_here(reset))]);
    assert_eq!(rig.said(DOWN), []);
}

#[test]
fn pf_16_a_direction_that_ends_without_its_frame_is_an_abort_on_both_sides() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.hears(DOWN, Arrival::Data(10));
    rig.hears(DOWN, Arrival::End);
    let cut = Some((Origin::Client, Reason::TransportLost));
    assert_eq!(told(&rig.said(UP)), cut);
    assert_eq!(
        told(&rig.said(DOWN)),
        cut,
        "the client may still be listening"
    );

    let mut rig = Rig::client(Explicit);
    rig.hears(UP, Arrival::End);
    assert_eq!(
        told(&rig.said(DOWN)),
        Some((Origin::Gateway, Reason::TransportLost))
    );
    assert!(matches!(rig.said(UP)[..], [Write::Reset(_)]));
}

#[test]
fn pf_16_ok_before_our_half_close_is_an_abort() {
    for form in [Response, Explicit] {
        let mut rig = Rig::client(form);
        rig.hears(UP, Arrival::FinFrame);
        rig.hears(UP, Arrival::End);
        assert_eq!(rig.reason(), Some(Err(Reason::TransportLost)));
        assert!(matches!(rig.said(UP)[..], [Write::Reset(_)]));
    }
}

#[test]
fn pf_06_a_typed_close_that_arrives_before_the_data_has_ended_is_an_abort() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.hears(UP, Arrival::Data(65_536));
    rig.loses(
        UP,
        Rank::Typed,
        end(Origin::Supervisor, Reason::SupervisorStopped),
    );
    assert_eq!(
        told(&rig.said(DOWN)),
        Some((Origin::Supervisor, Reason::SupervisorStopped))
    );
    assert_eq!(rig.hears(UP, Arrival::Data(1)), Take::Discard);
}

#[test]
fn pf_23_a_reset_after_fin_is_still_noticed() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.hears(DOWN, Arrival::FinFrame);
    rig.hears(DOWN, Arrival::End);
    rig.hears(UP, Arrival::Data(10 << 10));
    rig.said(UP);
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
fn a_violator_is_told_its_own_code_and_everybody_else_of_a_peer() {
    for (arrivals, form) in [
        (vec![Arrival::Init], Explicit),
        (vec![Arrival::Unknown], Explicit),
        (vec![Arrival::FinFrame], Response),
        (vec![Arrival::FinFrame], Unsupported),
        (vec![Arrival::FinFrame, Arrival::FinFrame], Explicit),
        (vec![Arrival::FinFrame, Arrival::Data(1)], Explicit),
        (vec![Arrival::FinFrame, Arrival::Data(0)], Explicit),
    ] {
        let mut rig = Rig::gateway(form, Explicit);
        for arrival in arrivals {
            rig.hears(DOWN, arrival);
        }
        assert_eq!(
            told(&rig.said(DOWN)),
            Some((Origin::Client, Reason::ProtocolViolation))
        );
        assert_eq!(
            told(&rig.said(UP)),
            Some((Origin::Client, Reason::PeerViolation))
        );
        assert_eq!(rig.reason(), Some(Err(Reason::ProtocolViolation)));
    }
}

#[test]
fn a_violator_without_trailers_of_ours_is_reset() {
    let mut rig = Rig::supervisor(Explicit);
    rig.machine
        .violate(DOWN, Reason::FrameTooLarge, "65537 bytes");
    rig.step();
    assert!(matches!(rig.said(DOWN)[..], [Write::Reset(_)]));
    assert_eq!(
        told(&rig.said(UP)),
        Some((Origin::Gateway, Reason::PeerViolation))
    );
}

#[test]
fn an_end_keeps_its_path_and_gains_this_hop() {
    let mut far = target_reset().via(&HopName::new("supervisor"));
    far.retry_after = Some(STEP);
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.loses(UP, Rank::Typed, far.clone());
    assert_eq!(rig.said(DOWN), [Write::Status(via_here(far.clone()))]);
    assert_eq!(rig.machine.outcome(), Some(Err(&far)));
}

#[test]
fn an_abort_overtakes_what_was_not_written_yet() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.machine.recv(DOWN, Arrival::FinFrame, rig.now);
    rig.machine.end(
        DOWN,
        Rank::Typed,
        end(Origin::Client, Reason::ClientCancelled),
    );
    rig.step();
    assert!(
        matches!(rig.said(UP)[..], [Write::Status(_)]),
        "no FIN before it"
    );
}

#[test]
fn of_two_endings_in_one_step_the_weightier_one_wins_in_either_order() {
    let ranks = [
        Rank::Own,
        Rank::Typed,
        Rank::Violation,
        Rank::Deadline,
        Rank::Transport,
    ];
    for (index, strong) in ranks.into_iter().enumerate() {
        for weak in &ranks[index + 1..] {
            for order in [[strong, *weak], [*weak, strong]] {
                let mut rig = Rig::gateway(Explicit, Explicit);
                order.iter().for_each(|rank| observe(&mut rig, *rank));
                rig.step();
                assert_eq!(rig.reason(), Some(Err(reason_of(strong))), "{order:?}");
            }
        }
    }
}

#[test]
fn completion_gives_way_to_everything_observed_in_its_own_step() {
    for rank in [
        Rank::Own,
        Rank::Typed,
        Rank::Violation,
        Rank::Deadline,
        Rank::Transport,
    ] {
        let mut rig = nearly_finished();
        rig.machine.recv(UP, Arrival::End, rig.now);
        observe(&mut rig, rank);
        rig.step();
        assert_eq!(rig.reason(), Some(Err(reason_of(rank))));
    }
}

#[test]
fn completion_that_was_reported_is_never_overridden() {
    for rank in [
        Rank::Own,
        Rank::Typed,
        Rank::Violation,
        Rank::Deadline,
        Rank::Transport,
    ] {
        let mut rig = nearly_finished();
        rig.hears(UP, Arrival::End);
        observe(&mut rig, rank);
        rig.passes(STEP);
        assert_eq!(rig.reason(), Some(Ok(())));
        assert_eq!(rig.said(DOWN), [Write::FinFrame, Write::Ok]);
        assert_eq!(rig.machine.poll_timeout(), None);
    }
}

#[test]
fn a_last_good_word_is_not_undone_by_what_happens_to_its_speaker() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.stalls(DOWN, true);
    rig.hears(DOWN, Arrival::FinFrame);
    rig.hears(UP, Arrival::Data(9));
    rig.hears(UP, Arrival::FinFrame);
    rig.hears(UP, Arrival::End);
    rig.loses(UP, Rank::Transport, lost(Origin::Supervisor));
    rig.passes(STEP);
    assert!(rig.is_open());
    rig.stalls(DOWN, false);
    assert_eq!(rig.said(DOWN), [Write::FinFrame, Write::Ok]);
}

#[test]
fn a_fin_alone_is_undone_by_what_happens_to_its_speaker() {
    for form in [Unsupported, Response] {
        let mut rig = Rig::gateway(Explicit, form);
        rig.stalls(DOWN, true);
        rig.hears(DOWN, Arrival::FinFrame);
        rig.hears(UP, Arrival::Data(9));
        rig.hears(UP, Arrival::End);
        rig.loses(
            UP,
            Rank::Typed,
            end(Origin::Supervisor, Reason::SupervisorLost),
        );
        assert_eq!(rig.reason(), Some(Err(Reason::SupervisorLost)));
    }
}

#[test]
fn the_first_cause_stays() {
    for first in [
        Rank::Own,
        Rank::Typed,
        Rank::Violation,
        Rank::Deadline,
        Rank::Transport,
    ] {
        let mut rig = Rig::gateway(Explicit, Explicit);
        observe(&mut rig, first);
        rig.step();
        rig.said(UP);
        for later in [
            Rank::Own,
            Rank::Typed,
            Rank::Violation,
            Rank::Deadline,
            Rank::Transport,
        ] {
            observe(&mut rig, later);
            rig.passes(STEP);
        }
        assert_eq!(rig.reason(), Some(Err(reason_of(first))));
        assert_eq!(rig.said(UP), [], "an end is told once");
    }
}

#[test]
fn a_bare_loss_of_a_relay_waits_for_its_word() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.loses(UP, Rank::Transport, lost(Origin::Supervisor));
    assert_eq!(rig.hears(DOWN, Arrival::Data(1)), Take::Discard);
    assert!(rig.is_open() && rig.said(DOWN).is_empty());
    assert_eq!(
        rig.machine.poll_timeout(),
        Some(rig.now + CLOSE_REASON_GRACE)
    );
    rig.passes(CLOSE_REASON_GRACE / 2);
    rig.loses(UP, Rank::Typed, target_reset());
    assert_eq!(
        told(&rig.said(DOWN)),
        Some((Origin::Target, Reason::TargetReset))
    );
}

#[test]
fn a_bare_loss_that_nobody_explains_is_one_after_100_ms() {
    for (mut rig, side) in [
        (Rig::gateway(Explicit, Explicit), UP),
        (Rig::supervisor(Explicit), DOWN),
    ] {
        rig.loses(side, Rank::Transport, lost(Origin::Supervisor));
        rig.passes(CLOSE_REASON_GRACE / 2);
        rig.loses(side, Rank::Transport, lost(Origin::Peer));
        assert!(rig.is_open());
        rig.passes(CLOSE_REASON_GRACE / 2);
        assert_eq!(rig.machine.outcome(), Some(Err(&lost(Origin::Supervisor))));
    }
}

#[test]
fn a_truncated_relay_waits_for_its_word_too() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.hears(UP, Arrival::End);
    assert!(rig.is_open());
    rig.loses(
        UP,
        Rank::Typed,
        end(Origin::Supervisor, Reason::SupervisorStopped),
    );
    assert_eq!(rig.reason(), Some(Err(Reason::SupervisorStopped)));
}

#[test]
fn everything_weightier_than_a_loss_ends_the_wait_for_a_word() {
    for rank in [Rank::Own, Rank::Typed, Rank::Violation, Rank::Deadline] {
        let mut rig = Rig::gateway(Explicit, Explicit);
        rig.loses(UP, Rank::Transport, lost(Origin::Supervisor));
        observe(&mut rig, rank);
        rig.step();
        assert_eq!(rig.reason(), Some(Err(reason_of(rank))));
    }
}

#[test]
fn only_relays_have_a_control_stream_that_could_explain_a_loss() {
    for (mut rig, side) in [
        (Rig::gateway(Explicit, Explicit), DOWN),
        (Rig::client(Explicit), UP),
    ] {
        rig.loses(side, Rank::Transport, lost(Origin::Gateway));
        assert_eq!(rig.reason(), Some(Err(Reason::TransportLost)));
    }
}

/// A gateway that lacks nothing but its supervisor's last word.
fn nearly_finished() -> Rig {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.hears(DOWN, Arrival::FinFrame);
    rig.hears(DOWN, Arrival::End);
    rig.hears(UP, Arrival::FinFrame);
    assert!(rig.is_open());
    rig
}

/// Makes an ending of each rank observable, on the client's side where it has one.
fn observe(rig: &mut Rig, rank: Rank) {
    match rank {
        Rank::Own => rig.machine.close(end(Origin::Gateway, reason_of(rank))),
        Rank::Typed | Rank::Transport => {
            rig.machine
                .end(DOWN, rank, end(Origin::Client, reason_of(rank)));
        }
        Rank::Violation => rig.machine.violate(DOWN, reason_of(rank), "why"),
        Rank::Deadline => rig.machine.set_deadline(rig.now),
    }
}

fn reason_of(rank: Rank) -> Reason {
    match rank {
        Rank::Own => Reason::OperatorClosed,
        Rank::Typed => Reason::ClientCancelled,
        Rank::Violation => Reason::FrameTooLarge,
        Rank::Deadline => Reason::OperationTimeout,
        Rank::Transport => Reason::TransportLost,
    }
}
