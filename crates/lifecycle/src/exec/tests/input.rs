//! What a caller may say: stdin and its end, resizes, signals.

use super::*;

#[test]
fn ex_05_the_end_of_stdin_ends_nothing_else() {
    let mut rig = Rig::gateway(OURS).running(START);
    assert_eq!(rig.says(CALLER, Kind::Stdin(3)), Take::Deliver);
    rig.says(CALLER, Kind::StdinFin);
    assert_eq!(rig.said(PROCESS), [Write::FinFrame]);
    rig.ends(CALLER);
    assert_eq!(rig.says(PROCESS, OUTPUT), Take::Deliver);
    assert_eq!(rig.says(CALLER, Kind::Signal(15)), Take::Deliver);
    assert_eq!(rig.reason(), None);
    assert_eq!(rig.machine.state(), State::Running(Input::Closed));
}

#[test]
fn ex_04_a_legacy_callers_end_of_stream_is_the_end_of_stdin() {
    let mut rig = Rig::gateway(LEGACY).running(START);
    rig.ends(CALLER);
    assert_eq!(rig.said(PROCESS), [Write::FinFrame]);
    assert_eq!(rig.reason(), None);
}

#[test]
fn ex_32_a_stream_that_ends_without_the_end_of_stdin_was_aborted() {
    let mut rig = Rig::gateway(OURS).running(START);
    rig.says(CALLER, Kind::Stdin(3));
    rig.ends(CALLER);
    assert_eq!(rig.reason(), Some(Err(Reason::TransportLost)));
    let to_process = rig.said(PROCESS);
    assert_eq!(told(&to_process), Some(Reason::TransportLost));
    assert!(!to_process.contains(&Write::FinFrame));
}

#[test]
fn the_end_of_stdin_waits_until_its_form_is_known() {
    for (agreed, form) in [(OURS, Write::FinFrame), (LEGACY, Write::EndStream)] {
        let mut rig = Rig::client();
        rig.says(CALLER, START);
        rig.says(CALLER, Kind::StdinFin);
        assert_eq!(rig.said(PROCESS), []);
        assert!(rig.opens(agreed), "headers mean that it runs");
        rig.step();
        assert_eq!(rig.said(PROCESS), [form]);
    }
}

#[test]
fn what_is_said_out_of_order_is_a_violation() {
    let wrong: [&[Kind]; 6] = [
        &[Kind::Stdin(1)],
        &[START, START],
        &[START, Kind::StdinFin, Kind::Stdin(1)],
        &[START, Kind::StdinFin, Kind::StdinFin],
        &[START, Kind::Unknown],
        &[START, Kind::Exit(0)],
    ];
    for kinds in wrong {
        let mut rig = Rig::gateway(OURS);
        for kind in kinds {
            rig.says(CALLER, *kind);
        }
        assert_eq!(
            rig.reason(),
            Some(Err(Reason::ProtocolViolation)),
            "{kinds:?}"
        );
        let (caller, process) = (rig.said(CALLER), rig.said(PROCESS));
        assert_eq!(told(&caller), Some(Reason::ProtocolViolation));
        assert_eq!(told(&process), Some(Reason::PeerViolation));
    }
}

#[test]
fn ex_22_a_resize_without_a_terminal_is_a_fault_or_nothing() {
    let mut ours = Rig::gateway(OURS).running(START);
    assert_eq!(ours.says(CALLER, Kind::Resize), Take::Discard);
    assert_eq!(ours.reason(), Some(Err(Reason::InvalidRequest)));
    let mut legacy = Rig::gateway(LEGACY).running(START);
    assert_eq!(legacy.says(CALLER, Kind::Resize), Take::Discard);
    assert_eq!(legacy.reason(), None);
    let mut tty = Rig::gateway(LEGACY).running(TTY);
    assert_eq!(tty.says(CALLER, Kind::Resize), Take::Deliver);
}

#[test]
fn a_signal_that_a_hop_does_not_know_is_typed_or_refused() {
    let legacy = |start| {
        let mut rig = Rig::client();
        rig.says(CALLER, start);
        rig.opens(LEGACY);
        rig
    };
    let mut tty = legacy(TTY);
    assert_eq!(tty.says(CALLER, Kind::Signal(2)), Take::Type(0x03));
    assert_eq!(tty.says(CALLER, Kind::Signal(3)), Take::Type(0x1c));
    assert_eq!(tty.says(CALLER, Kind::Signal(15)), Take::Discard);
    assert_eq!(tty.reason(), Some(Err(Reason::CapabilityRequired)));
    let mut pipes = legacy(START);
    assert_eq!(pipes.says(CALLER, Kind::Signal(2)), Take::Discard);
    assert_eq!(pipes.reason(), Some(Err(Reason::CapabilityRequired)));
    let mut ended = legacy(TTY);
    ended.says(CALLER, Kind::StdinFin);
    ended.says(CALLER, Kind::Signal(2));
    assert_eq!(ended.reason(), Some(Err(Reason::CapabilityRequired)));
}

#[test]
fn the_end_of_stdin_before_the_relay_was_claimed_is_held() {
    let caller = Hop::acceptor(Orientation::Forward, OURS);
    let mut rig = Rig::new(caller, Hop::awaited(), Origin::Gateway);
    rig.says(CALLER, START);
    rig.says(CALLER, Kind::StdinFin);
    rig.stalls(PROCESS, true);
    assert_eq!(rig.said(PROCESS), [], "there is nobody to say it to");
    assert!(!rig.opens(Capabilities::SESSION), "it has not started yet");
    rig.step();
    assert_eq!(rig.said(PROCESS), [Write::FinFrame], "once");
    rig.says(PROCESS, Kind::Started(true));
    assert_eq!(rig.said(PROCESS), []);
    assert_eq!(rig.machine.state(), State::Running(Input::Closed));
}
