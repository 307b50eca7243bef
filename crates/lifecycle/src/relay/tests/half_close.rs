//! FIN, both ways, and what finishes a stream.

use super::*;
use HalfClose::{Explicit, Response, Unsupported};

#[test]
fn pf_01_a_client_that_has_finished_gets_its_reply() {
    let mut rig = Rig::supervisor(Explicit);
    assert_eq!(rig.hears(DOWN, Arrival::Data(5)), Take::Deliver);
    rig.hears(DOWN, Arrival::FinFrame);
    assert_eq!(rig.said(UP), [Write::EndStream]);
    assert_eq!(rig.hears(UP, Arrival::Data(5)), Take::Deliver);
    rig.hears(UP, Arrival::End);
    assert_eq!(rig.said(DOWN), [Write::FinFrame, Write::EndStream]);
    assert_eq!(rig.said(UP), [Write::Close]);
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn pf_01_a_gateway_passes_fin_on_in_the_form_of_each_hop() {
    for (client, fin_of_client) in [
        (Unsupported, vec![Arrival::End]),
        (Response, vec![Arrival::End]),
        (Explicit, vec![Arrival::FinFrame, Arrival::End]),
    ] {
        for (supervisor, fin_for_supervisor) in [
            (Unsupported, Write::Ok),
            (Response, Write::FinFrame),
            (Explicit, Write::FinFrame),
        ] {
            let mut rig = Rig::gateway(client, supervisor);
            for arrival in &fin_of_client {
                rig.hears(DOWN, *arrival);
            }
            assert_eq!(rig.said(UP), [fin_for_supervisor]);
            assert_eq!(rig.hears(UP, Arrival::Data(9)), Take::Deliver);
            assert_eq!(rig.said(DOWN), []);
            assert!(rig.is_open());
        }
    }
}

#[test]
fn pf_02_a_client_whose_target_has_finished_may_go_on() {
    for form in [Response, Explicit] {
        let mut rig = Rig::gateway(form, Explicit);
        rig.hears(UP, Arrival::FinFrame);
        assert_eq!(rig.said(DOWN), [Write::FinFrame]);
        assert_eq!(rig.hears(DOWN, Arrival::Data(1 << 20)), Take::Deliver);
        assert!(rig.is_open() && rig.said(UP).is_empty());
    }
}

#[test]
fn pf_03_a_target_that_closes_is_heard_at_once_although_the_client_stays() {
    let mut rig = Rig::client(Explicit);
    rig.hears(UP, Arrival::Data(4));
    rig.hears(UP, Arrival::FinFrame);
    assert_eq!(rig.said(DOWN), [Write::EndStream]);
    assert!(rig.is_open());
}

#[test]
fn pf_04_nothing_is_finished_while_bytes_wait_for_a_slow_reader() {
    let mut rig = Rig::supervisor(Explicit);
    rig.stalls(UP, true);
    rig.hears(UP, Arrival::End);
    rig.hears(DOWN, Arrival::Data(8 << 20));
    rig.hears(DOWN, Arrival::FinFrame);
    assert_eq!(
        rig.said(DOWN),
        [Write::FinFrame],
        "END_STREAM would say that all was delivered"
    );
    assert!(rig.is_open());
    rig.stalls(UP, false);
    assert_eq!(rig.said(DOWN), [Write::EndStream]);
    assert_eq!(rig.said(UP), [Write::EndStream, Write::Close]);
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn pf_04_a_fin_that_was_not_written_is_not_taken() {
    let mut rig = Rig::supervisor(Explicit);
    rig.hears(UP, Arrival::End);
    rig.machine.recv(DOWN, Arrival::FinFrame, rig.now);
    rig.machine.flushed(UP);
    rig.machine.settle(rig.now);
    assert!(rig.is_open());
    rig.step();
    assert_eq!(rig.reason(), Some(Ok(())));
}

#[test]
fn pf_07_an_empty_frame_means_nothing() {
    for mut rig in [
        Rig::client(Explicit),
        Rig::gateway(Unsupported, Unsupported),
    ] {
        for len in [0, 1, 0, 1] {
            let expected = if len > 0 {
                Take::Deliver
            } else {
                Take::Discard
            };
            assert_eq!(rig.hears(UP, Arrival::Data(len)), expected);
        }
        assert!(rig.is_open() && rig.said(DOWN).is_empty());
    }
}

#[test]
fn ok_waits_for_the_next_hops_own_good_status() {
    let mut rig = Rig::gateway(Explicit, Explicit);
    rig.hears(DOWN, Arrival::FinFrame);
    rig.hears(DOWN, Arrival::End);
    rig.hears(UP, Arrival::FinFrame);
    assert_eq!(rig.said(DOWN), [Write::FinFrame]);
    assert!(
        rig.is_open(),
        "the supervisor has not said that it delivered everything"
    );
    rig.hears(UP, Arrival::End);
    assert_eq!(rig.said(DOWN), [Write::Ok]);
    assert_eq!(rig.said(UP), [Write::FinFrame, Write::Ok]);

    let mut rig = Rig::client(Explicit);
    rig.hears(DOWN, Arrival::End);
    rig.hears(UP, Arrival::FinFrame);
    assert!(rig.is_open());
    rig.hears(UP, Arrival::End);
    assert_eq!(rig.said(UP), [Write::FinFrame, Write::EndStream]);
    assert_eq!(rig.said(DOWN), [Write::EndStream, Write::Close]);
}

#[test]
fn a_fin_waits_until_its_form_is_known() {
    let upstream = Leg::opener(Orientation::Forward, None);
    let mut rig = Rig::new(Leg::socket(), upstream, Origin::Client);
    rig.hears(DOWN, Arrival::Data(3));
    rig.hears(DOWN, Arrival::End);
    assert_eq!(rig.said(UP), []);
    rig.machine.opened(UP, Explicit);
    rig.step();
    assert_eq!(rig.said(UP), [Write::FinFrame, Write::EndStream]);
}

#[test]
fn a_fin_that_came_before_the_relay_was_opened_is_passed_on_then() {
    let downstream = Leg::acceptor(Orientation::Forward, Explicit);
    let mut rig = Rig::new(downstream, Leg::awaited(), Origin::Gateway);
    assert_eq!(rig.hears(DOWN, Arrival::Data(3)), Take::Deliver);
    rig.hears(DOWN, Arrival::FinFrame);
    assert_eq!(rig.said(UP), []);
    rig.machine.opened(UP, Unsupported);
    rig.step();
    assert_eq!(rig.said(UP), [Write::Ok]);
    assert!(rig.is_open());
}

#[test]
fn ok_without_a_frame_is_fin_where_no_frame_was_promised() {
    for form in [Unsupported, Response] {
        let mut rig = Rig::client(form);
        rig.hears(UP, Arrival::End);
        assert_eq!(rig.said(DOWN), [Write::EndStream]);
        rig.hears(DOWN, Arrival::End);
        assert_eq!(rig.said(UP), [Write::EndStream]);
        assert_eq!(rig.reason(), Some(Ok(())));
    }
}

#[test]
fn a_half_close_frame_that_was_not_negotiated_is_named() {
    let mut rig = Rig::gateway(Response, Explicit);
    rig.hears(DOWN, Arrival::FinFrame);
    let said = rig.said(DOWN);
    let [Write::Status(end)] = &said[..] else {
        panic!("a status, not {said:?}")
    };
    assert_eq!(
        (end.reason, &end.message[..]),
        (
            Reason::ProtocolViolation,
            "protocol violation: a half-close frame, which was not negotiated, is not legal on an \
             open stream"
        )
    );
}

#[test]
fn a_client_that_knows_empty_frames_hears_one_when_the_path_is_open() {
    for (client, heard) in [
        (Unsupported, vec![]),
        (Response, vec![]),
        (Explicit, vec![Write::Keepalive]),
    ] {
        let downstream = Leg::acceptor(Orientation::Forward, client);
        let mut rig = Rig::new(downstream, Leg::awaited(), Origin::Gateway);
        rig.step();
        assert_eq!(rig.said(DOWN), []);
        rig.machine.opened(UP, Explicit);
        rig.step();
        assert_eq!(rig.said(DOWN), heard, "{client:?}");
        assert_eq!(rig.said(UP), []);
    }
}
