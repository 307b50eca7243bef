//! The hop between two gateways: the same forms, other names for a loss.

use super::*;
use HalfClose::{Explicit, Response, Unsupported};

/// The gateway that the client talks to: its RPC, and ours to the owner.
fn requester(client: HalfClose, owner: HalfClose) -> Rig {
    let downstream = Leg::acceptor(Orientation::Forward, client);
    let mut rig = Rig::new(downstream, Leg::awaited(), Origin::Gateway);
    rig.machine.leads_to_owner();
    rig.machine.opened(UP, owner);
    rig.step();
    let _greeting = rig.said(DOWN);
    rig
}

/// The owner: the other gateway's RPC, and the supervisor's.
fn owner(requester: HalfClose, supervisor: HalfClose) -> Rig {
    let downstream = Leg::acceptor(Orientation::Forward, requester).between_gateways();
    let upstream = Leg::acceptor(Orientation::Backward, supervisor);
    Rig::new(downstream, upstream, Origin::Gateway)
}

#[test]
fn ha_02_a_fin_crosses_both_gateways_and_ends_one_direction() {
    let mut asks = requester(Explicit, Explicit);
    asks.hears(DOWN, Arrival::FinFrame);
    assert_eq!(asks.said(UP), [Write::FinFrame, Write::EndStream]);
    assert!(asks.is_open());
    let mut owns = owner(Explicit, Explicit);
    owns.hears(DOWN, Arrival::FinFrame);
    owns.hears(DOWN, Arrival::End);
    assert_eq!(owns.said(UP), [Write::FinFrame]);
    assert_eq!(owns.said(DOWN), []);

    owns.hears(UP, Arrival::FinFrame);
    assert_eq!(owns.said(DOWN), [Write::FinFrame]);
    owns.hears(UP, Arrival::End);
    assert_eq!(owns.said(DOWN), [Write::Ok]);
    assert_eq!(owns.reason(), Some(Ok(())));
    asks.hears(UP, Arrival::FinFrame);
    assert_eq!(asks.said(DOWN), [Write::FinFrame]);
    assert!(asks.is_open(), "the owner's status is to come");
    asks.hears(UP, Arrival::End);
    assert_eq!(asks.reason(), Some(Ok(())));
    assert_eq!(asks.said(DOWN), [Write::Ok]);
}

#[test]
fn ha_04_a_lost_owner_is_told_to_the_client_and_a_lost_peer_to_the_supervisor() {
    let mut asks = requester(Explicit, Explicit);
    let end = end(Origin::Peer, Reason::OwnerLost);
    asks.loses(UP, Rank::Transport, end.clone());
    assert_eq!(asks.said(DOWN), [Write::Status(via_here(end))]);
    let mut owns = owner(Explicit, Explicit);
    let end = super::end(Origin::Peer, Reason::PeerLost);
    owns.loses(DOWN, Rank::Transport, end.clone());
    assert_eq!(owns.said(UP), [Write::Status(via_here(end))]);
}

#[test]
fn ha_02_a_cancel_is_a_reset_of_the_call_to_the_owner() {
    let mut asks = requester(Explicit, Explicit);
    let cancelled = end(Origin::Client, Reason::ClientCancelled);
    asks.loses(DOWN, Rank::Typed, cancelled.clone());
    assert_eq!(asks.said(UP), [Write::Reset(via_here(cancelled))]);
}

#[test]
fn a_direction_that_another_gateway_leaves_unfinished_is_a_loss_of_that_gateway() {
    let mut asks = requester(Explicit, Explicit);
    asks.hears(UP, Arrival::End);
    let lost = Some((Origin::Peer, Reason::OwnerLost));
    assert_eq!(told(&asks.said(DOWN)), lost);
    let mut owns = owner(Explicit, Explicit);
    owns.hears(DOWN, Arrival::End);
    let lost = Some((Origin::Peer, Reason::PeerLost));
    assert_eq!(told(&owns.said(UP)), lost);
}

#[test]
fn another_gateways_violation_is_told_to_it_alone_in_its_own_words() {
    let mut owns = owner(Explicit, Explicit);
    owns.hears(DOWN, Arrival::Init);
    let own = Some((Origin::Peer, Reason::ProtocolViolation));
    assert_eq!(told(&owns.said(DOWN)), own);
    let far = Some((Origin::Peer, Reason::PeerViolation));
    assert_eq!(told(&owns.said(UP)), far);
}

#[test]
fn a_released_owner_keeps_its_own_forms() {
    for (form, fin) in [
        (Unsupported, vec![Write::EndStream]),
        (Response, vec![Write::EndStream]),
    ] {
        let mut asks = requester(Explicit, form);
        asks.hears(DOWN, Arrival::FinFrame);
        assert_eq!(asks.said(UP), fin);
        asks.hears(UP, Arrival::End);
        assert_eq!(asks.said(DOWN), [Write::FinFrame, Write::Ok]);
        assert_eq!(asks.reason(), Some(Ok(())));
    }
}

#[test]
fn bare_headers_are_enough_for_another_gateway_which_greets_its_client_itself() {
    let downstream = Leg::acceptor(Orientation::Forward, Explicit).between_gateways();
    let mut owns = Rig::new(downstream, Leg::awaited(), Origin::Gateway);
    owns.machine.opened(UP, Explicit);
    owns.step();
    assert_eq!(owns.said(DOWN), []);
    let client = Leg::acceptor(Orientation::Forward, Explicit);
    let mut asks = Rig::new(client, Leg::awaited(), Origin::Gateway);
    asks.machine.leads_to_owner();
    asks.machine.opened(UP, Explicit);
    asks.step();
    assert_eq!(asks.said(DOWN), [Write::Keepalive]);
}

#[test]
fn a_client_that_cannot_half_close_is_spared_behind_two_gateways_too() {
    let mut asks = requester(Unsupported, Explicit);
    asks.hears(UP, Arrival::Data(10));
    asks.hears(UP, Arrival::FinFrame);
    asks.loses(UP, Rank::Typed, target_reset());
    assert_eq!(asks.said(DOWN), [Write::Ok]);
    assert_eq!(asks.reason(), Some(Ok(())));
}
